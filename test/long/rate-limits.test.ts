/**
 * Tests the rate limits of the classes `manage`, `run` and `publish` in real time, with two processes. Sends 1,000 calls of each class
 * across the boundary of a window. Takes about 75 seconds.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { type FreshDatabase, freshDatabase } from "../harness/postgres.js";
import { createFirstCredentials } from "../harness/service.js";

const MAIN_PROGRAM = fileURLToPath(new URL("../../src/main.js", import.meta.url));
const WINDOW_MS = 60_000;
const CALL_COUNT = 1_000;
const DURATION_MS = 70_000;

describe("the rate limits in real time", () => {
  let database: FreshDatabase;
  let folder: string;
  let children: ChildProcess[] = [];
  let urls: string[];
  let token: string;
  let appId: number;

  async function start(index: number): Promise<string> {
    const child = spawn(process.execPath, ["--no-node-snapshot", MAIN_PROGRAM], {
      env: {
        PATH: process.env["PATH"],
        PORT: "0",
        ROLES: "api",
        SETTINGS_KEY: Buffer.alloc(32, 7).toString("base64"),
        LOG_LEVEL: "info",
        DATABASE_URL: database.url,
        DATA_DIR: join(folder, String(index)),
      },
      stdio: ["ignore", "pipe", "inherit"],
    });
    children.push(child);
    for await (const line of createInterface({ input: child.stdout })) {
      const { msg, url } = JSON.parse(line) as { msg: string; url: string };
      if (msg !== "ready") continue;
      child.stdout.resume();
      return url;
    }
    throw new Error("the service ended before it was ready");
  }

  before(async () => {
    database = await freshDatabase();
    folder = mkdtempSync(join(tmpdir(), "svc-limits-"));
    const first = await createFirstCredentials(database.url, folder);
    token = first.tokens.editor;
    appId = first.appId;
    urls = await Promise.all([start(0), start(1)]);
  });
  after(async () => {
    const ended = children.map((child) => once(child, "exit"));
    for (const child of children) child.kill("SIGTERM");
    await Promise.all(ended);
    children = [];
    await database.drop();
    rmSync(folder, { recursive: true, force: true });
  });

  interface AcceptedCall {
    sent: number;
    received: number;
  }

  async function call(index: number, method: string, path: string): Promise<AcceptedCall | null> {
    const sent = performance.now();
    const answer = await fetch(urls[index % 2]! + path, { method, headers: { "auth-token": token } });
    await answer.arrayBuffer();
    expect(answer.status).to.be.oneOf([200, 404, 429]);
    return answer.status === 429 ? null : { sent, received: performance.now() };
  }

  const ascending = (a: number, b: number) => a - b;

  async function sendCallsAcrossWindow(limit: number, method: string, path: string): Promise<void> {
    const started = performance.now();
    const calls = Array.from({ length: CALL_COUNT }, async (_, index) => {
      // Sends the calls in bursts of 20.
      await delay(Math.floor(index / 20) * (DURATION_MS / (CALL_COUNT / 20)));
      return call(index, method, path);
    });
    const accepted = (await Promise.all(calls)).filter((answer) => answer !== null);
    expect(performance.now() - started).to.be.above(WINDOW_MS);
    // The service counts each call at a moment after its sending and before its response. So `limit` + 1 accepted calls, measured from the
    // first sending to the last response, must take at least as long as the window.
    const sent = accepted.map((answer) => answer.sent).sort(ascending);
    const received = accepted.map((answer) => answer.received).sort(ascending);
    const spans = received.slice(limit).map((end, index) => end - sent[index]!);
    expect(accepted.length).to.be.within(limit + 1, 2 * limit);
    expect(Math.min(...spans)).to.be.at.least(WINDOW_MS);
  }

  it("accept at most 60, 30 and 10 calls in any 60 s", async () => {
    const actions = `/v3/apps/${appId}/actions`;
    await Promise.all([
      sendCallsAcrossWindow(60, "GET", actions),
      sendCallsAcrossWindow(30, "POST", `${actions}/nobody/run`),
      sendCallsAcrossWindow(10, "POST", `${actions}/2000000000/publish`),
    ]);
  });
});
