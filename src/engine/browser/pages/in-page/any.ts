/** Type of the browser's globals and of values of actions, which have no types in this folder. */

// biome-ignore lint/suspicious/noExplicitAny: globals of the browser have no types here
export type Any = any;
