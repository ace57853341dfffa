/** Data of a person that pages and actions of an app can read. */
export interface Person {
  id: number;
  firstName: string;
  lastName: string;
  email: string;
}

/** Returns an SQL expression for a person as JSON; NULL if a left join found no person. `alias` is the alias of the table `person`. */
export const personJsonSql = (alias: string): string => `
  CASE WHEN ${alias}.id IS NOT NULL THEN json_build_object('id', ${alias}.id, 'firstName', ${alias}.first_name,
    'lastName', ${alias}.last_name, 'email', ${alias}.email) END`;
