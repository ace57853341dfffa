/**
 * Measures the time from the creation of a run's row to the start of the run, on an idle system. The baseline is a notification between two
 * database sessions.
 */

import { setTimeout as delay } from "node:timers/promises";
import { Client } from "pg";
import { createLatencyRows, type FigureRow, timeCalls } from "../harness/figure.js";
import { type BenchService, startBenchService } from "../harness/service.js";

export const title = "time from a log event to the start of its run, idle service";

const EVENT_COUNT = 100;
const EVENT_INTERVAL_MS = 100;
const ACTION_CODE = "async function execute() { return 1; }";

/** Measures the time from NOTIFY to its arrival in another session. No runner can start a run sooner, because it waits for NOTIFY. */
async function measureFloor(databaseUrl: string): Promise<number[]> {
  const [sender, listener] = [new Client(databaseUrl), new Client(databaseUrl)];
  await Promise.all([sender.connect(), listener.connect()]);
  await listener.query("LISTEN bench");
  const samples = await timeCalls(EVENT_COUNT, async () => {
    const received = new Promise((resolve) => listener.once("notification", resolve));
    await sender.query("NOTIFY bench");
    await received;
  });
  await Promise.all([sender.end(), listener.end()]);
  return samples;
}

async function measureStarts({ call, first, databaseUrl }: BenchService): Promise<number[]> {
  const app = `/v1/apps/${first.appId}`;
  const actions = `/v3/apps/${first.appId}/actions`;
  await call("POST", `${app}/publish`);
  const triggers = [{ trigger: "log", where: { type: "bench.event" } }];
  const { action } = await call("POST", actions, { name: "woken", code: ACTION_CODE, active: true, triggers });
  await call("POST", `${actions}/${action.id}/publish`);
  for (let event = 0; event < EVENT_COUNT; event += 1) {
    await call("POST", `${app}/logs`, { type: "bench.event" });
    await delay(EVENT_INTERVAL_MS);
  }
  const client = new Client(databaseUrl);
  await client.connect();
  const { rows } = await client.query<{ ms: number }>(
    "SELECT (extract(epoch FROM started_at - queued_at) * 1000)::float8 AS ms FROM run WHERE started_at IS NOT NULL",
  );
  await client.end();
  return rows.map(({ ms }) => ms);
}

export async function run(): Promise<FigureRow[]> {
  const service = await startBenchService();
  try {
    const floor = await measureFloor(service.databaseUrl);
    return createLatencyRows(
      "queued to started",
      await measureStarts(service),
      "a notification between two database sessions",
      floor,
    );
  } finally {
    await service.stop();
  }
}
