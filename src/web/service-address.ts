/** Where the service is for its own pages: one folder above their scripts, whatever stands before it in the address. */

/** @param path of the service, such as "/graphql" */
export const serviceAddress = (path: string): URL => new URL(`..${path}`, import.meta.url);
