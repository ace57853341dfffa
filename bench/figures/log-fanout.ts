/**
 * Measures the delivery of one app's log entries to 1,000 WebSockets: deliveries per second, and their delay. The baseline is a bare
 * graphql-ws server.
 */
import { EventEmitter, once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "pg";
import { addLogEntry, createLogData } from "../../test/harness/log-entries.js";
import { type BenchChild, nextMessage, startBenchChild } from "../harness/child.js";
import { createLatencyRows, type FigureRow } from "../harness/figure.js";
import { type BenchService, startBenchService } from "../harness/service.js";
import type { DeliveryReport, SubscribersOptions } from "../harness/subscribers.js";

export const title = "log entries of one app to 1,000 websockets of one process";

const SOCKET_COUNT = 1_000;
const LOG_SUBSCRIPTION = "subscription { actionLogAdded(appId: 1) { id type createdAt data } }";
/** Maximum number of events in flight while throughput is measured. With this number, the server never waits for an event. */
const EVENTS_IN_FLIGHT = 8;
const ROUND_MS = 2_000;
/** Number of events in a round that measures the delay. */
const PACED_EVENTS = 20;
/** Interval between two events in such a round. It is long enough for both servers to deliver all messages of an event. */
const PACED_INTERVAL_MS = 100;
const WARM_UP_INTERVAL_MS = 50;
const QUIET_MS = 300;

/** Creates the payload of an event: the time when it is sent, in milliseconds. */
const createPayload = () => ({ sentAt: performance.timeOrigin + performance.now() });

/** One of the two compared servers, with the process that subscribes to it. */
interface SubscribedServer {
  /** Sends one event to the server. */
  emit(): Promise<void>;
  getDeliveredCount(): number;
  /** Resolves when the subscribers send their next report. */
  waitForReport(): Promise<unknown>;
  /** Returns the delays that were reported since the last call, in milliseconds. */
  takeDelays(): number[];
}

/** Opens the WebSockets. Resolves when each socket has received an event and no event is in flight. */
async function subscribe(
  subscribers: BenchChild,
  options: SubscribersOptions,
  emit: () => Promise<void>,
): Promise<SubscribedServer> {
  const reports = new EventEmitter();
  let lastReport: DeliveryReport = { delivered: 0, reachedSockets: 0, delays: [] };
  const delays: number[] = [];
  subscribers.on("message", (report: DeliveryReport) => {
    lastReport = report;
    for (const milliseconds of report.delays) delays.push(milliseconds);
    reports.emit("report");
  });
  const ended = once(subscribers, "exit").then(() => {
    throw new Error("the subscriber process exited");
  });
  // Prevents an unhandled rejection while nothing awaits the promise.
  ended.catch(() => undefined);
  subscribers.send(options);
  while (lastReport.reachedSockets < options.sockets) {
    await emit();
    await Promise.race([delay(WARM_UP_INTERVAL_MS), ended]);
  }
  for (let before = -1; before !== lastReport.delivered; await delay(QUIET_MS)) before = lastReport.delivered;
  return {
    emit,
    getDeliveredCount: () => lastReport.delivered,
    waitForReport: () => Promise.race([once(reports, "report"), ended]),
    takeDelays: () => delays.splice(0),
  };
}

/** Measures deliveries per second, with at most EVENTS_IN_FLIGHT events in flight. */
async function measureThroughput({ emit, getDeliveredCount, waitForReport }: SubscribedServer): Promise<number> {
  const before = getDeliveredCount();
  const startedAt = performance.now();
  let emitted = 0;
  for (; performance.now() - startedAt < ROUND_MS; emitted += 1) {
    while (emitted * SOCKET_COUNT - (getDeliveredCount() - before) >= EVENTS_IN_FLIGHT * SOCKET_COUNT)
      await waitForReport();
    await emit();
  }
  while (getDeliveredCount() - before < emitted * SOCKET_COUNT) await waitForReport();
  return (emitted * SOCKET_COUNT * 1_000) / (performance.now() - startedAt);
}

/** Measures the milliseconds from the creation of an event to its arrival, at a constant rate. */
async function measureDelays({
  emit,
  getDeliveredCount,
  waitForReport,
  takeDelays,
}: SubscribedServer): Promise<number[]> {
  const until = getDeliveredCount() + PACED_EVENTS * SOCKET_COUNT;
  takeDelays();
  for (let event = 0; event < PACED_EVENTS; event += 1) {
    await emit();
    await delay(PACED_INTERVAL_MS);
  }
  while (getDeliveredCount() < until) await waitForReport();
  return takeDelays();
}

async function compareServers(rounds: number, service: SubscribedServer, bare: SubscribedServer): Promise<FigureRow[]> {
  const sums = { service: 0, bare: 0 };
  const delays = { service: [] as number[], bare: [] as number[] };
  // The two servers alternate, because the speed of the machine varies.
  for (let round = 0; round < rounds; round += 1) {
    sums.bare += await measureThroughput(bare);
    sums.service += await measureThroughput(service);
    delays.bare.push(...(await measureDelays(bare)));
    delays.service.push(...(await measureDelays(service)));
  }
  const floor = { name: "graphql-ws alone", value: sums.bare / rounds };
  return [
    { name: "deliveries", value: sums.service / rounds, unit: "/s", floor },
    ...createLatencyRows(
      `delay at ${1_000 / PACED_INTERVAL_MS} events a second`,
      delays.service,
      "graphql-ws alone",
      delays.bare,
    ),
  ];
}

function subscribeToBaseline(server: BenchChild, url: string, subscribers: BenchChild): Promise<SubscribedServer> {
  let id = 0;
  return subscribe(subscribers, { url, token: "", query: LOG_SUBSCRIPTION, sockets: SOCKET_COUNT }, async () => {
    const createdAt = new Date().toISOString();
    server.send({ id: ++id, type: "app.task.completed", createdAt, data: createLogData(createPayload()) });
  });
}

function subscribeToService(
  { url, first }: BenchService,
  db: Client,
  subscribers: BenchChild,
): Promise<SubscribedServer> {
  const options = { url, token: first.tokens.editor, query: LOG_SUBSCRIPTION, sockets: SOCKET_COUNT };
  return subscribe(subscribers, options, () => addLogEntry(db, first.appId, createPayload()));
}

export async function run(rounds: number): Promise<FigureRow[]> {
  const service = await startBenchService({ ROLES: "api" });
  const children = ["bare-subscriptions.js", "subscribers.js", "subscribers.js"].map(startBenchChild);
  const [bare, baselineSubscribers, serviceSubscribers] = children as [BenchChild, BenchChild, BenchChild];
  const db = new Client(service.databaseUrl);
  try {
    const [url] = await Promise.all([nextMessage<string>(bare), db.connect()]);
    return await compareServers(
      rounds,
      await subscribeToService(service, db, serviceSubscribers),
      await subscribeToBaseline(bare, url, baselineSubscribers),
    );
  } finally {
    for (const child of children) child.kill();
    await db.end();
    await service.stop();
  }
}
