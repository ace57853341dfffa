/** Searches texts for sets of secrets. Each set is prepared once. Long texts are searched in another thread. */

import type { MaskedTextStart, StreamedText } from "./secret-scan/partial-text.js";
import type { ScannedText, Secret } from "./secret-scan/scan.js";
import { createScanCache } from "./secret-scan/scan-cache.js";
import { countScanTaskCharacters, performScanTask, type ScanTask } from "./secret-scan/task.js";
import { createScanThreadQueue } from "./secret-scan/thread-queue.js";

export type { ScannedText, Secret } from "./secret-scan/scan.js";

/** Longer texts are searched in another thread. Up to this length, a search takes at most a few milliseconds. */
const INLINE_TEXT_MAX_CHARACTERS = 24 * 1024;
const INLINE_SECRET_MAX_CHARACTERS = 8 * 1024;
const INLINE_SECRETS_MAX = 100;
const INLINE_CACHE_MAX_BYTES = 64 * 1024 * 1024;

export interface SecretScanner {
  find(texts: readonly ScannedText[]): Promise<string | null>;
  findInUrl(url: string): Promise<string | null>;
  mask(texts: readonly ScannedText[]): Promise<string[]>;
  maskJson(json: string): Promise<string>;
  /** Masks a text that is still being received, up to the index where an incomplete secret may begin. Pass the rest again later. */
  maskStartOfStreamedText(part: StreamedText): Promise<MaskedTextStart>;
  /** Returns the name of a secret in the JSON text (or its UTF-8 bytes); null if there is none. */
  findInJson(json: string | Uint8Array): Promise<string | null>;
}

export interface SecretScannerCache {
  /**
   * Returns a scanner for a set of secrets.
   * @param owner owner of the work, such as an app; owners take turns in the thread
   * @param key text that is different for each set of secrets
   */
  getScanner(owner: string, key: string, secrets: readonly Secret[]): SecretScanner;
}

const EMPTY_SCANNER: SecretScanner = {
  find: async () => null,
  findInUrl: async () => null,
  mask: async (texts) => texts.map(({ text }) => text),
  maskJson: async (json) => json,
  maskStartOfStreamedText: async ({ text, from }) => ({
    masked: text.slice(from),
    to: text.length,
    neededFrom: text.length,
  }),
  findInJson: async () => null,
};

export function createSecretScannerCache(): SecretScannerCache {
  const inlineCache = createScanCache(INLINE_CACHE_MAX_BYTES);
  const threadQueue = createScanThreadQueue();

  return {
    getScanner(owner, key, secrets) {
      if (secrets.length === 0) return EMPTY_SCANNER;
      const characters = secrets.reduce((sum, { value }) => sum + value.length, 0);
      const isSmall = secrets.length <= INLINE_SECRETS_MAX && characters <= INLINE_SECRET_MAX_CHARACTERS;
      // biome-ignore lint/suspicious/noExplicitAny: the type of the result depends on the kind of the task
      async function runTask(task: ScanTask): Promise<any> {
        if (!isSmall || countScanTaskCharacters(task) > INLINE_TEXT_MAX_CHARACTERS)
          return threadQueue.runTask(owner, key, secrets, task);
        return performScanTask(inlineCache.find(key) ?? inlineCache.create(key, secrets), task);
      }
      return {
        find: (texts) => runTask({ kind: "find", texts }),
        findInUrl: (text) => runTask({ kind: "url", text }),
        mask: (texts) => runTask({ kind: "mask", texts }),
        maskJson: (text) => runTask({ kind: "maskJson", text }),
        maskStartOfStreamedText: (part) => runTask({ kind: "maskStartOfStreamedText", ...part }),
        findInJson: (text) => runTask({ kind: "json", text }),
      };
    },
  };
}
