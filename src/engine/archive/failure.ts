/** The one error of a file that is no archive, or not any more a whole one. */
import { StartError } from "../../errors.js";

/** One line for people: what is wrong with the file, or with what was given to open it. */
export class ArchiveError extends StartError {
  override readonly name = "ArchiveError";
}

export const damaged = (how: string): ArchiveError => new ArchiveError(`the file is damaged: ${how}`);
