/** Data of a person that pages and code of an app can read. */
export interface Person {
  id: number;
  firstName: string;
  lastName: string;
  email: string;
}

/**
 * Returns an SQL expression for a person as JSON, or NULL if a left join found no row. `alias` is the alias of the
 * table of people.
 */
export const personJsonSql = (alias: string): string => `
  CASE WHEN ${alias}.id IS NOT NULL THEN json_build_object('id', ${alias}.id, 'firstName', ${alias}.first_name,
    'lastName', ${alias}.last_name, 'email', ${alias}.email) END`;
