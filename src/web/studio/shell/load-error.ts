/** Error of a part of Studio that could not be loaded. The file does not import React, because modules that run before React use it. */

/** A file of Studio could not be loaded, because a new release has other file names or the connection is lost. */
export class LoadError extends Error {}

/** Returns the loaded module. @throws LoadError */
export async function withLoadError<Part>(part: Promise<Part>): Promise<Part> {
  try {
    return await part;
  } catch (cause) {
    throw new LoadError("a file of Studio could not be loaded", { cause });
  }
}
