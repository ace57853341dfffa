/** Imports the set-up's scripts, which are plain JavaScript outside the build. */

/** The module scripts/setup/<name>.mjs, with the shape that the test expects of it. */
export function setUpModule<T>(name: string): Promise<T> {
  return import(new URL(`../../../scripts/setup/${name}.mjs`, import.meta.url).href);
}
