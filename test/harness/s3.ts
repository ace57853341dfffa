/** Starts an S3 server for tests (@20minutes/s3rver), with one bucket. */
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

interface S3Server {
  run(): Promise<AddressInfo>;
  close(): Promise<void>;
}
// The package has no types.
const S3rver = createRequire(import.meta.url)("@20minutes/s3rver") as new (options: object) => S3Server;

export async function startS3(bucket = "media"): Promise<{ url: string; folder: string; stop: () => Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), "svc-s3-"));
  const server = new S3rver({
    port: 0,
    address: "127.0.0.1",
    silent: true,
    allowMismatchedSignatures: true,
    directory: folder,
    configureBuckets: [{ name: bucket, configs: [] }],
  });
  const address = await server.run();
  return {
    url: `http://127.0.0.1:${address.port}`,
    folder,
    async stop() {
      await server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
