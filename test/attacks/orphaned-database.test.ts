import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { Client } from "pg";
import { until } from "../harness/until.js";

const OWNER = fileURLToPath(new URL("../engine/postgres-owner.js", import.meta.url));

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  return (await client.query(sql).finally(() => client.end())).rows;
}

function isRunning(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.charAt(stat.lastIndexOf(")") + 2) !== "Z";
  } catch {
    return false;
  }
}

describe("a service that dies without a word", () => {
  let dataDir: string;
  const owners: ChildProcess[] = [];

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), "svc-orphan-"));
  });

  afterEach(async () => {
    for (const owner of owners.splice(0)) {
      if (owner.exitCode !== null || owner.signalCode !== null) continue;
      owner.kill("SIGTERM");
      await once(owner, "exit");
    }
    await rm(dataDir, { recursive: true, force: true });
  });

  async function startOwner(): Promise<{ owner: ChildProcess; url: string }> {
    const owner = spawn(process.execPath, ["--max-old-space-size=64", OWNER, dataDir], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    owners.push(owner);
    const [line] = await once(createInterface({ input: owner.stdout! }), "line");
    return { owner, url: JSON.parse(line).url };
  }

  for (const [how, signal] of [
    ["is killed", "SIGKILL"],
    ["aborts", "SIGUSR2"],
    ["runs out of memory", "SIGHUP"],
  ] as const) {
    it(`takes its PostgreSQL along when it ${how}, and loses no commit`, async () => {
      const { owner, url } = await startOwner();
      await query(url, "CREATE TABLE kept AS SELECT 42 AS value");
      const [first] = readFileSync(join(dataDir, "postgres/postmaster.pid"), "utf8").split("\n");
      const gone = once(owner, "exit");
      owner.kill(signal);
      const [code] = await gone;
      expect(code).to.equal(null);
      await until(() => !isRunning(Number(first)));
      const again = await startOwner();
      expect(await query(again.url, "SELECT value FROM kept")).to.deep.equal([{ value: 42 }]);
    });
  }
});
