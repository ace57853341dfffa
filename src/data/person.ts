/** A person as pages, versions and code of an app see the person. */
export interface Person {
  id: number;
  firstName: string;
  lastName: string;
  email: string;
}

/** Returns SQL of a person as JSON; null if the join of `alias` found no row. */
export const personJson = (alias: string): string => `
  CASE WHEN ${alias}.id IS NOT NULL THEN json_build_object('id', ${alias}.id, 'firstName', ${alias}.first_name,
    'lastName', ${alias}.last_name, 'email', ${alias}.email) END`;
