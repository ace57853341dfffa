/** One app's log entries to 1,000 sockets of one process: deliveries per second and their delay, compared with bare graphql-ws. */
import { EventEmitter, once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "pg";
import { addLogEntry, logData } from "../../test/harness/log-entries.js";
import { type Child, messageOf, startChild } from "../harness/child.js";
import { latencyRows, type Row } from "../harness/figure.js";
import { type BenchService, startBenchService } from "../harness/service.js";
import type { Report, Wanted } from "../harness/subscribers.js";

export const title = "log entries of one app to 1,000 sockets of one process, beside bare graphql-ws";

const SOCKETS = 1_000;
const QUERY = "subscription { actionLogAdded(appId: 1) { id type createdAt data } }";
/** Events in flight while throughput is measured: enough that the server never waits for the next. */
const WINDOW = 8;
const ROUND_MS = 2_000;
/** Events per round while delay is measured: a rate that both servers sustain. */
const PACED_EVENTS = 20;
const PACE_MS = 100;
const WARM_UP_PACE_MS = 50;
const QUIET_MS = 300;

/** Part of each event: its time of sending, in milliseconds. */
const payload = () => ({ sentAt: performance.timeOrigin + performance.now() });

/** One server with its subscribers. */
interface Side {
  /** Makes one event. */
  emit(): Promise<void>;
  delivered(): number;
  /** Resolves when more has been delivered. */
  progress(): Promise<unknown>;
  /** Returns the delays since the last call. */
  takeDelays(): number[];
}

/** Opens the sockets and resolves when each has received an event, and none is in flight. */
async function subscribe(subscribers: Child, wanted: Wanted, emit: () => Promise<void>): Promise<Side> {
  const reports = new EventEmitter();
  let last: Report = { delivered: 0, reached: 0, delays: [] };
  const delays: number[] = [];
  subscribers.on("message", (report: Report) => {
    last = report;
    for (const one of report.delays) delays.push(one);
    reports.emit("report");
  });
  const ended = once(subscribers, "exit").then(() => {
    throw new Error("the subscribers ended");
  });
  ended.catch(() => undefined);
  subscribers.send(wanted);
  while (last.reached < wanted.sockets) {
    await emit();
    await Promise.race([delay(WARM_UP_PACE_MS), ended]);
  }
  for (let before = -1; before !== last.delivered; await delay(QUIET_MS)) before = last.delivered;
  return {
    emit,
    delivered: () => last.delivered,
    progress: () => Promise.race([once(reports, "report"), ended]),
    takeDelays: () => delays.splice(0),
  };
}

/** Deliveries per second with `WINDOW` events in flight at any time. */
async function throughput({ emit, delivered, progress }: Side): Promise<number> {
  const before = delivered();
  const begun = performance.now();
  let emitted = 0;
  for (; performance.now() - begun < ROUND_MS; emitted += 1) {
    while (emitted * SOCKETS - (delivered() - before) >= WINDOW * SOCKETS) await progress();
    await emit();
  }
  while (delivered() - before < emitted * SOCKETS) await progress();
  return (emitted * SOCKETS * 1_000) / (performance.now() - begun);
}

/** Milliseconds from the creation of an event to its arrival, at a constant rate. */
async function delaysOf({ emit, delivered, progress, takeDelays }: Side): Promise<number[]> {
  const until = delivered() + PACED_EVENTS * SOCKETS;
  takeDelays();
  for (let event = 0; event < PACED_EVENTS; event += 1) {
    await emit();
    await delay(PACE_MS);
  }
  while (delivered() < until) await progress();
  return takeDelays();
}

async function measure(rounds: number, service: Side, bare: Side): Promise<Row[]> {
  const sums = { service: 0, bare: 0 };
  const delays = { service: [] as number[], bare: [] as number[] };
  // They alternate, because the speed of the machine varies.
  for (let round = 0; round < rounds; round += 1) {
    sums.bare += await throughput(bare);
    sums.service += await throughput(service);
    delays.bare.push(...(await delaysOf(bare)));
    delays.service.push(...(await delaysOf(service)));
  }
  const floor = { name: "bare graphql-ws", value: sums.bare / rounds };
  return [
    { name: "deliveries", value: sums.service / rounds, unit: "/s", floor },
    ...latencyRows(`delay at ${1_000 / PACE_MS} events a second`, delays.service, "bare graphql-ws", delays.bare),
  ];
}

function startBare(server: Child, url: string, subscribers: Child): Promise<Side> {
  let id = 0;
  return subscribe(subscribers, { url, token: "", query: QUERY, sockets: SOCKETS }, async () => {
    const createdAt = new Date().toISOString();
    server.send({ id: ++id, type: "app.task.completed", createdAt, data: logData(payload()) });
  });
}

function startOurs({ url, first }: BenchService, db: Client, subscribers: Child): Promise<Side> {
  const wanted = { url, token: first.tokens.editor, query: QUERY, sockets: SOCKETS };
  return subscribe(subscribers, wanted, () => addLogEntry(db, first.appId, payload()));
}

export async function run(rounds: number): Promise<Row[]> {
  const service = await startBenchService({ ROLES: "api" });
  const children = ["bare-subscriptions.js", "subscribers.js", "subscribers.js"].map(startChild);
  const [bare, ofBare, ofService] = children as [Child, Child, Child];
  const db = new Client(service.databaseUrl);
  try {
    const [url] = await Promise.all([messageOf<string>(bare), db.connect()]);
    return await measure(rounds, await startOurs(service, db, ofService), await startBare(bare, url, ofBare));
  } finally {
    for (const one of children) one.kill();
    await db.end();
    await service.stop();
  }
}
