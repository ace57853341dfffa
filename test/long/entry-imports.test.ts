import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { Readable } from "node:stream";
import { json } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { expect } from "chai";
import { from as copyFrom } from "pg-copy-streams";
import { openDatabase, rows } from "../../src/data/database.js";
import { createClient } from "../../src/postgres.js";
import { startProcess } from "../harness/process.js";

const ROWS = 1_000_000;
const LINES_PER_CHUNK = 1_000;
const MEMORY_ABOVE_IDLE_MB = 150;

const row = (at: number) => ({
  Name: `person ${at}`,
  Email: `p${at}@example.org`,
  Office: `office ${at % 50}`,
  n: String(at),
});

async function* generateCsv(): AsyncGenerator<string> {
  yield "Name,Email,Office,n\n";
  for (let at = 0; at < ROWS; at += LINES_PER_CHUNK) {
    yield Array.from({ length: LINES_PER_CHUNK }, (_, more) => `${Object.values(row(at + more)).join(",")}\n`).join("");
  }
}

async function* generateCopyLines(appId: number, id: number): AsyncGenerator<string> {
  for (let at = 0; at < ROWS; at += LINES_PER_CHUNK) {
    yield Array.from(
      { length: LINES_PER_CHUNK },
      (_, more) => `${appId}\t${id}\t${JSON.stringify(row(at + more))}\n`,
    ).join("");
  }
}

const megabytes = (pid: number, field: string): number =>
  Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024;

/** Sends an import. Unlike fetch, this function waits for the response without a limit. */
async function post(url: string, headers: Record<string, string>): Promise<unknown> {
  const sent = request(url, { method: "POST", headers });
  const responsePromise = once(sent, "response") as Promise<[IncomingMessage]>;
  await pipeline(Readable.from(generateCsv()), sent);
  const [answer] = await responsePromise;
  return json(answer);
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return (performance.now() - startedAt) / 1000;
}

describe("an import of a million rows of CSV", () => {
  it("takes less than 60 s plus 1.5 times the time of COPY, and less than 150 MB of additional memory", async () => {
    const service = startProcess({ ROLES: "api" });
    try {
      const url = await service.ready();
      const { tokens, appId } = service.credentials();
      const headers = { "auth-token": tokens.editor, "content-type": "application/json" };
      const base = `${url}/v1/apps/${appId}/data-sources`;
      const make = async (name: string): Promise<number> => {
        const answer = await fetch(base, { method: "POST", headers, body: JSON.stringify({ name }) });
        return ((await answer.json()) as { dataSource: { id: number } }).dataSource.id;
      };
      const [imported, plain] = [await make("imported"), await make("plain")];
      const client = createClient(service.databaseUrl());
      await client.connect();
      const copySeconds = await timed(() =>
        pipeline(
          Readable.from(generateCopyLines(appId, plain)),
          client.query(copyFrom("COPY data_source_entry (app_id, data_source_id, data) FROM STDIN")),
        ),
      );
      await client.end();
      const idle = megabytes(service.pid, "VmRSS");
      const importSeconds = await timed(async () => {
        const answer = await post(`${base}/${imported}/import`, { ...headers, "content-type": "text/csv" });
        expect(answer).to.deep.equal({ inserted: ROWS });
      });
      const above = megabytes(service.pid, "VmHWM") - idle;
      process.stdout.write(`${JSON.stringify({ copySeconds, importSeconds, above })}\n`);
      const db = await openDatabase(service.databaseUrl(), 1);
      const [tally] = await rows<{ entries: number }>(
        db,
        "SELECT entries FROM data_source_tally WHERE data_source_id = $1",
        [imported],
      );
      await db.destroy();
      expect(tally!.entries).to.equal(ROWS);
      expect(importSeconds).to.be.below(1.5 * copySeconds + 60);
      expect(above).to.be.below(MEMORY_ABOVE_IDLE_MB);
    } finally {
      await service.clean();
    }
  });
});
