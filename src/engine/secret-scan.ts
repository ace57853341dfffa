/**
 * Searches texts for sets of secrets. A set is prepared once. Short texts are searched at once on the main thread, long
 * ones in another thread, so that they do not block the process.
 */
import { createScanCache } from "./secret-scan/kept-scans.js";
import type { MaskedBeginning, TextBeginning } from "./secret-scan/partial-text.js";
import type { ScannedText, Secret } from "./secret-scan/scan.js";
import { performScanTask, sizeOfTask, type Task } from "./secret-scan/task.js";
import { createThreadQueue } from "./secret-scan/thread-queue.js";

export type { ScannedText, Secret } from "./secret-scan/scan.js";

/**
 * Maximum length of a text that is scanned on the main thread. Measured: the scan takes at most 4 ms, the preparation
 * of the secrets 6 ms. The transfer to a thread takes about 0.2 ms.
 */
const INLINE_TEXT_CHARACTERS = 24 * 1024;
const INLINE_SECRET_CHARACTERS = 8 * 1024;
const INLINE_SECRETS = 100;
const INLINE_SCANS_MAX_BYTES = 64 * 1024 * 1024;

/** Functions that search for one set of secrets. See createSecretScan. */
export interface Scan {
  find(texts: readonly ScannedText[]): Promise<string | null>;
  findInUrl(url: string): Promise<string | null>;
  mask(texts: readonly ScannedText[]): Promise<string[]>;
  maskJson(json: string): Promise<string>;
  /**
   * Masks a text that is still being received, up to the first place where a secret may have begun. The rest waits for
   * more text.
   */
  maskBeginning(part: TextBeginning): Promise<MaskedBeginning>;
  /** Returns the name of a secret in JSON text, or null. @param json text, or its UTF-8 bytes */
  findInJson(json: string | Uint8Array): Promise<string | null>;
}

export interface SecretScans {
  /**
   * Returns the scan of a set of secrets.
   * @param asker owner of the work: owners take turns
   * @param key text that is equal only for equal sets of secrets
   */
  of(asker: string, key: string, secrets: readonly Secret[]): Scan;
}

/** Scan of an empty set of secrets, which finds nothing. */
const NO_SECRETS: Scan = {
  find: async () => null,
  findInUrl: async () => null,
  mask: async (texts) => texts.map(({ text }) => text),
  maskJson: async (json) => json,
  maskBeginning: async ({ text, from }) => ({
    masked: text.slice(from),
    to: text.length,
    neededFrom: text.length,
  }),
  findInJson: async () => null,
};

export function createSecretScans(): SecretScans {
  const inline = createScanCache(INLINE_SCANS_MAX_BYTES);
  const thread = createThreadQueue();

  return {
    of(asker, key, secrets) {
      if (secrets.length === 0) return NO_SECRETS;
      const characters = secrets.reduce((sum, { value }) => sum + value.length, 0);
      const isSmall = secrets.length <= INLINE_SECRETS && characters <= INLINE_SECRET_CHARACTERS;
      // biome-ignore lint/suspicious/noExplicitAny: the type of the result depends on the kind of the task
      async function runTask(task: Task): Promise<any> {
        if (!isSmall || sizeOfTask(task) > INLINE_TEXT_CHARACTERS) return thread.runTask(asker, key, secrets, task);
        return performScanTask(inline.find(key) ?? inline.create(key, secrets), task);
      }
      return {
        find: (texts) => runTask({ kind: "find", texts }),
        findInUrl: (text) => runTask({ kind: "url", text }),
        mask: (texts) => runTask({ kind: "mask", texts }),
        maskJson: (text) => runTask({ kind: "maskJson", text }),
        maskBeginning: (part) => runTask({ kind: "maskBeginning", ...part }),
        findInJson: (text) => runTask({ kind: "json", text }),
      };
    },
  };
}
