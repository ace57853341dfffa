/** Errors of backup files. */
import { StartError } from "../../errors.js";

/** Error for a problem with a backup file, its passphrase or its key. The message is one line for the operator. */
export class ArchiveError extends StartError {
  override readonly name = "ArchiveError";
}

export const createDamagedFileError = (reason: string): ArchiveError =>
  new ArchiveError(`the file is damaged: ${reason}`);
