/** Compares results of code samples in a network isolate (a sandbox mode) and in a web worker, which has the browser's own APIs. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { expect } from "chai";
import { type ReachableHost, reachableHost } from "../host.js";
import { runOf } from "../support.js";
import { findDifferences } from "./differences.js";
import { KNOWN_DIFFERENCES } from "./known.js";
import type { Sample } from "./outcomes.js";

/** Number of samples in one run. With more samples, the result could exceed its maximum size. */
const SAMPLES_PER_RUN = 500;

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method, url = "", headers } = request;
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  if (url !== "/refused") response.setHeader("Access-Control-Allow-Origin", runOf("").origin);
  response.setHeader("Access-Control-Allow-Headers", "x-own, content-type");
  response.setHeader("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE, Own");
  response.setHeader("Access-Control-Expose-Headers", "x-shown");
  const status = Number(/^\/status\/(\d+)/.exec(url)?.[1] ?? 200);
  if (url.startsWith("/echo")) {
    const { host: _host, connection: _connection, ...otherHeaders } = headers;
    response.end(JSON.stringify([method, url, otherHeaders, Buffer.concat(chunks).toString("latin1")]));
  } else if (url === "/reason") response.writeHead(299, "Its own reason").end("x");
  else if (url.startsWith("/moved"))
    response.writeHead(Number(url.slice(7)) || 302, { Location: "/json" }).end("moved");
  else if (url === "/loop") response.writeHead(302, { Location: "/loop" }).end();
  else if (url === "/exposed") response.writeHead(200, { "X-Shown": "yes", "X-Hidden": "no" }).end();
  else if (url === "/cut") {
    response.writeHead(200, { "Content-Length": "100" });
    response.write("a part", () => response.destroy());
  } else if (url === "/half") response.write("half");
  else if (url === "/never") response.on("close", () => {});
  else if (url === "/closed") response.destroy();
  else if (url === "/json") response.writeHead(200, { "Content-Type": "application/json" }).end('{"a":[1,"ä"]}');
  else if (url === "/broken") response.end('{"a":');
  else if (url === "/latin1")
    response.writeHead(200, { "Content-Type": "text/plain; charset=latin1" }).end(Buffer.from([228]));
  else if (url === "/image") response.writeHead(200, { "Content-Type": "image/png" }).end(Buffer.from([1, 2, 3]));
  else if (url === "/form")
    response.writeHead(200, { "Content-Type": "application/x-www-form-urlencoded" }).end("a=b&c=d+e");
  else if (url === "/cookies") response.writeHead(200, { "Set-Cookie": "a=b" }).end();
  else response.writeHead(status).end(status === 204 || status === 304 ? undefined : `status ${status}`);
}

export function networkIsolateComparison() {
  let host: ReachableHost;

  before(async () => {
    host = await reachableHost((request, response) => void answer(request, response).catch(() => response.destroy()));
  });
  after(() => host.stop());

  /** Expects different results for all samples in KNOWN_DIFFERENCES, and equal results for all others. */
  async function expectAlike(samples: readonly Sample[], before = ""): Promise<void> {
    const found: Record<string, string[]> = {};
    for (let at = 0; at < samples.length; at += SAMPLES_PER_RUN) {
      const differing = await findDifferences(host.browsers, samples.slice(at, at + SAMPLES_PER_RUN), before);
      for (const [title, inWorker, inIsolate] of differing) found[title] = [inWorker, inIsolate];
    }
    const isKnown = (title: string) => KNOWN_DIFFERENCES.some(({ of }) => of.test(title));
    const titles = samples.map(([title]) => title);
    const unknown = Object.entries(found).filter(([title]) => !isKnown(title));
    expect(unknown, "differences").to.deep.equal([]);
    expect(
      titles.filter((title) => isKnown(title) && !found[title]),
      "known, and alike by now",
    ).to.deep.equal([]);
  }

  return { expectAlike, hostUrl: () => host.url };
}
