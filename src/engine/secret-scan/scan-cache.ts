/** Cache of prepared secret scans in one thread. Above its memory limit, the least recently used scans are removed. */
import { LRUCache } from "lru-cache";
import { type Secret, SecretScan } from "./scan.js";

interface ScanCache {
  find(key: string): SecretScan | undefined;
  create(key: string, secrets: readonly Secret[]): SecretScan;
}

export function createScanCache(maxBytes: number): ScanCache {
  const scans = new LRUCache<string, SecretScan>({ maxSize: maxBytes, sizeCalculation: ({ bytes }) => bytes + 1 });
  return {
    find: (key) => scans.get(key),
    create(key, secrets) {
      const scan = new SecretScan(secrets);
      scans.set(key, scan);
      return scan;
    },
  };
}
