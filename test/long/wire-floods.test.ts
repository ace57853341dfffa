/**
 * Floods the service with requests and messages over few connections, while a neighbour uses another app. Prints the neighbour's
 * measurements.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import WebSocket from "ws";
import { generateToken } from "../../src/operations/access/tokens.js";
import { createNeighbour, type NeighbourApp } from "../harness/neighbour.js";
import { type ServiceProcess, startProcess } from "../harness/process.js";

const MB = 1024 * 1024;
const FLOOD_MS = 6_000;
/** Minimum time in milliseconds for which the neighbour sends calls. It is longer than a flood, to measure later effects too. */
const NEIGHBOUR_CALLS_MS = 10_000;
/** Maximum duration of a neighbour's call in milliseconds. */
const WAIT_MAX_MS = 5_000;
const GROWTH_MAX_BYTES = 500 * MB;

function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1_024;
}

describe("a flood over few connections", () => {
  let service: ServiceProcess;
  let url: string;
  let neighbour: NeighbourApp;
  before(async () => {
    service = startProcess();
    url = await service.ready();
    neighbour = await createNeighbour(service, url);
    await neighbour.measureDuring(Promise.resolve(), 1_000);
  });
  after(async () => {
    service.signal("SIGTERM");
    await service.ended;
    await service.clean();
  });

  async function measure(name: string, flood: Promise<unknown>): Promise<void> {
    const before = residentBytes(service.pid);
    let peak = before;
    const watching = setInterval(() => (peak = Math.max(peak, residentBytes(service.pid))), 100);
    const figures = await neighbour.measureDuring(flood, NEIGHBOUR_CALLS_MS);
    clearInterval(watching);
    const grownMb = Math.round((peak - before) / MB);
    const rounded = Object.fromEntries(
      Object.entries(figures).map(([key, value]) => [key, typeof value === "number" ? Math.round(value) : value]),
    );
    process.stdout.write(`      ${name}: ${JSON.stringify({ ...rounded, grownMb })}\n`);
    expect(figures.failures).to.deep.equal([]);
    expect(figures.wait).to.be.below(WAIT_MAX_MS);
    expect(peak - before).to.be.below(GROWTH_MAX_BYTES);
  }

  /** Sends 500 requests on each connection without waiting for responses. Reconnects after a second, or when the service disconnects. */
  async function floodPipelines(connections: number, token: () => string): Promise<void> {
    const { hostname, port } = new URL(url);
    const end = Date.now() + FLOOD_MS;
    const open = async () => {
      while (Date.now() < end) {
        const socket: Socket = connect(Number(port), hostname).on("error", () => undefined);
        const closed = new Promise((resolve) => socket.once("close", resolve));
        const requests = Array.from(
          { length: 500 },
          () => `GET /v3/apps/1/actions HTTP/1.1\r\nHost: x\r\nAuth-Token: ${token()}\r\n\r\n`,
        );
        socket.resume().write(requests.join(""));
        await Promise.race([closed, delay(Math.min(1_000, Math.max(0, end - Date.now())))]);
        socket.destroy();
      }
    };
    await Promise.all(Array.from({ length: connections }, open));
  }

  const tokenSources: [string, () => string][] = [
    ["made-up tokens with a wrong checksum", () => `svc_live_${randomBytes(32).toString("base64url")}000000`],
    ["made-up tokens of the older format", () => `svc_live_${randomBytes(32).toString("base64url")}`],
    ["made-up tokens with a right checksum", () => generateToken("live")],
    ["one token of a visitor", () => service.credentials().tokens.live],
  ];
  for (const [name, token] of tokenSources) {
    it(`delays no call of a neighbour by 5 s: 20 connections with 500 pipelined requests each, ${name}`, () => {
      const known = name.startsWith("one") ? token() : null;
      return measure(
        name,
        floodPipelines(20, () => known ?? token()),
      );
    });
  }

  it("delays no call of a neighbour by 5 s: 40 websockets that subscribe and complete without a pause", async () => {
    const { live } = service.credentials().tokens;
    const query = "subscription { clientTriggers(appId: 1) { __typename } }";
    const end = Date.now() + FLOOD_MS;
    const flood = async () => {
      while (Date.now() < end) {
        const socket = new WebSocket(`${url.replace("http", "ws")}/graphql`, "graphql-transport-ws");
        const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
        socket.on("error", () => undefined);
        await Promise.race([once(socket, "open"), closed]);
        socket.send(JSON.stringify({ type: "connection_init", payload: { authToken: live } }));
        await Promise.race([once(socket, "message"), closed]);
        for (let id = 0; socket.readyState === socket.OPEN && Date.now() < end; id += 1) {
          socket.send(JSON.stringify({ id: String(id), type: "subscribe", payload: { query } }));
          socket.send(JSON.stringify({ id: String(id), type: "complete" }));
          if (id % 100 === 0) await delay(1);
          if (socket.bufferedAmount > MB) await delay(50);
        }
        socket.terminate();
      }
    };
    await measure("websockets", Promise.all(Array.from({ length: 40 }, flood)));
  });
});
