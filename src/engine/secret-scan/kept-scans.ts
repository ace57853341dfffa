/** The scans of one thread that were used last, made once for each key, bounded by the bytes that they hold. */
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
