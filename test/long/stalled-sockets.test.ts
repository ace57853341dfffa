import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import { Client } from "pg";
import { addLogEntry } from "../harness/log-entries.js";
import { countOpenSockets, followLogs, type LogSocket } from "../harness/log-sockets.js";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { until } from "../harness/until.js";

const SOCKET_COUNT = 200;
const READERS = 20;
const ENTRY_CHARACTERS = 50_000;
/** Pause between two log entries in milliseconds. */
const ENTRY_INTERVAL_MS = 100;
const MB = 1024 * 1024;

function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1_024;
}

describe("200 sockets that stop reading", () => {
  let service: ServiceProcess;
  let db: Client;
  before(async () => {
    service = startProcess({ ROLES: "api" });
    await service.ready();
    db = new Client(service.databaseUrl());
    await db.connect();
  });
  after(async () => {
    await db?.end();
    service.signal("SIGTERM");
    await service.ended;
    await service.clean();
  });

  const emit = () => addLogEntry(db, 1, { filler: "x".repeat(ENTRY_CHARACTERS) });

  it("cost the service less than 100 MB and are closed within 30 s, while sockets that read get every entry", async () => {
    const url = await service.listening();
    const { tokens } = service.credentials();
    const open = () => followLogs(url, tokens.editor, 1);
    const readers: LogSocket[] = [];
    while (readers.length < READERS) readers.push(await open());
    const received = () => Math.min(...readers.map((reader) => reader.received()));
    await until(async () => {
      await emit();
      return received() > 10;
    });
    const before = residentBytes(service.pid);

    const stalled: LogSocket[] = [];
    while (stalled.length < SOCKET_COUNT) stalled.push(await open());
    expect(countOpenSockets(url, stalled)).to.equal(SOCKET_COUNT);
    for (const socket of stalled) socket.stall();
    const startedAt = Date.now();
    const read = received();
    let [peak, emitted, openSockets] = [before, 0, SOCKET_COUNT];
    while (openSockets > 0 && Date.now() - startedAt < 30_000) {
      await emit();
      emitted += 1;
      await delay(ENTRY_INTERVAL_MS);
      peak = Math.max(peak, residentBytes(service.pid));
      openSockets = countOpenSockets(url, stalled);
    }
    const seconds = (Date.now() - startedAt) / 1_000;
    process.stdout.write(`${JSON.stringify({ openSockets, seconds, emitted, grownMb: (peak - before) / MB })}\n`);
    expect(openSockets).to.equal(0);
    expect(peak - before).to.be.below(100 * MB);
    await until(() => received() >= read + emitted);
    expect(countOpenSockets(url, readers)).to.equal(READERS);
    // Code 1006: the connections end without a close frame, after the data that the network had already accepted.
    expect(new Set(await Promise.all(stalled.map((socket) => socket.drain())))).to.deep.equal(new Set([1006]));
  });
});
