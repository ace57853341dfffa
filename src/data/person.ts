/** A person as the pages, versions and code of an app see one. */
export interface Person {
  id: number;
  firstName: string;
  lastName: string;
  email: string;
}
