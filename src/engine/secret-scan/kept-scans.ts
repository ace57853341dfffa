/** Cache of prepared scans of one thread, limited by their memory. The least recently used scans are dropped. */
import { LRUCache } from "lru-cache";
import { createSecretScan, type Secret, type SecretScan } from "./scan.js";

export interface KeptScans {
  find(key: string): SecretScan | undefined;
  make(key: string, secrets: readonly Secret[]): SecretScan;
}

export function createKeptScans(maxBytes: number): KeptScans {
  const scans = new LRUCache<string, SecretScan>({ maxSize: maxBytes, sizeCalculation: ({ bytes }) => bytes + 1 });
  return {
    find: (key) => scans.get(key),
    make(key, secrets) {
      const scan = createSecretScan(secrets);
      scans.set(key, scan);
      return scan;
    },
  };
}
