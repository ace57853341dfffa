/** Error for a file that is not an archive, or is damaged. */
import { StartError } from "../../errors.js";

/** Error whose message is one line for people: what is wrong with the file, the passphrase or the key. */
export class ArchiveError extends StartError {
  override readonly name = "ArchiveError";
}

export const damagedArchive = (reason: string): ArchiveError => new ArchiveError(`the file is damaged: ${reason}`);
