/** Type of globals of the browser, for all files in this folder. */

// biome-ignore lint/suspicious/noExplicitAny: globals of the browser have no types here
export type Any = any;
