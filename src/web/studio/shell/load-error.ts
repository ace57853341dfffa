/** Failure to load a part of Studio. Free of React, for the modules that run before it is loaded. */

/** A file of Studio could not be loaded: another release has other names for them, or the connection is lost. */
export class LoadError extends Error {}

/** Returns the loaded part. @throws LoadError */
export async function loading<Part>(part: Promise<Part>): Promise<Part> {
  try {
    return await part;
  } catch (cause) {
    throw new LoadError("a file of Studio could not be loaded", { cause });
  }
}
