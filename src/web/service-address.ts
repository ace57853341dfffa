/**
 * Builds URLs of the service for the service's own pages. The scripts of these pages are in a folder below the
 * service's URL, which may have a path prefix.
 */

/** Returns the URL of a path of the service, such as "/graphql". */
export const resolveServiceUrl = (path: string): URL => new URL(`..${path}`, import.meta.url);
