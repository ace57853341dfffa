/**
 * Error for a file of Studio that could not be loaded. This module must not import React, because some of its importers run before React
 * is loaded.
 */

/** A file of Studio could not be loaded, because a new release has other file names or because the connection is lost. */
export class LoadError extends Error {}

/** Waits for a dynamic import and returns the module. @throws LoadError if the module cannot be loaded */
export async function importOrThrowLoadError<Part>(part: Promise<Part>): Promise<Part> {
  try {
    return await part;
  } catch (cause) {
    throw new LoadError("a file of Studio could not be loaded; check the connection and reload the page", { cause });
  }
}
