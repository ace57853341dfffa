/** Reads text files of a project as UTF-8. The service's import from a Git repository follows the same rules. */
import { readFileSync } from "node:fs";
import { CliError } from "./failure.js";

/** Returns the text without a byte order mark. @param name name of the input in the error. @throws CliError if it is not UTF-8 text */
export function decodeText(bytes: Uint8Array, name: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new CliError(`${name} is not UTF-8 text`);
  }
}

/**
 * Returns the text of a file without a byte order mark, which some editors on Windows write.
 * @param name name of the file in the error
 * @throws CliError if the file is not UTF-8 text; other errors of the file system
 */
export function readTextFile(path: string, name: string): string {
  return decodeText(readFileSync(path), name);
}
