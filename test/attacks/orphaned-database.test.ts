import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { endOwner, isRunning, type Owner, postmasterPid, query, startOwner } from "../harness/postgres-owners.js";
import { sampleOf } from "../harness/samples.js";
import { until } from "../harness/until.js";

/** Limit of Node's heap in MB, so that a script runs out of memory soon. */
const SMALL_HEAP_OPTIONS = ["--max-old-space-size=64"];

describe("a service that is killed", () => {
  let dataDir: string;
  const owners: Owner[] = [];

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), "svc-orphan-"));
  });

  afterEach(async () => {
    for (const owner of owners.splice(0)) await endOwner(owner, "SIGTERM");
    await rm(dataDir, { recursive: true, force: true });
  });

  async function start(): Promise<{ owner: Owner; url: string }> {
    const owner = await startOwner(dataDir, { nodeFlags: SMALL_HEAP_OPTIONS, stderr: "ignore" });
    owners.push(owner);
    return { owner, url: owner.printed.url! };
  }

  const ownerDeaths = [
    ["is killed", "SIGKILL"],
    ["aborts", "SIGUSR2"],
    ["runs out of memory", "SIGHUP"],
  ] as const;
  for (const [how, signal] of sampleOf(ownerDeaths, 0, 3)) {
    it(`ends its PostgreSQL when it ${how}, and loses no commit`, async () => {
      const { owner, url } = await start();
      await query(url, "CREATE TABLE kept AS SELECT 42 AS value");
      const first = postmasterPid(dataDir);
      expect(await endOwner(owner, signal)).to.equal(null);
      await until(() => !isRunning(first));
      const again = await start();
      expect(await query(again.url, "SELECT value FROM kept")).to.deep.equal([{ value: 42 }]);
    });
  }
});
