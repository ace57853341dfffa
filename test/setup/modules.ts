/** Imports the scripts of the set-up, which are plain JavaScript outside of the build. */

export function urlOfSetUpModule(name: string): string {
  return new URL(`../../../scripts/setup/${name}.mjs`, import.meta.url).href;
}

export function importSetUpModule<T>(name: string): Promise<T> {
  return import(urlOfSetUpModule(name));
}
