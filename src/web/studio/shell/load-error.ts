/**
 * Error for a file of Studio that could not be loaded. This module does not import React, because modules use it that run before React is
 * loaded.
 */

/** A file of Studio could not be loaded, because a new release has other file names or because the connection is lost. */
export class LoadError extends Error {}

/** Returns the imported module. @throws LoadError if it cannot be loaded */
export async function withLoadError<Part>(part: Promise<Part>): Promise<Part> {
  try {
    return await part;
  } catch (cause) {
    throw new LoadError("a file of Studio could not be loaded", { cause });
  }
}
