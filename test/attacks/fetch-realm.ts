/** Starts browsers and a local host for tests of runs that share a thread with `fetch`. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { PageRunRequest } from "../../src/engine/browser/run.js";
import { type ReachableHost, reachableHost } from "../engine/browser/host.js";
import { resultOf } from "../engine/browser/support.js";

/**
 * Starts browsers and a local host for the enclosing suite. `arrived` has the paths of requests to the host and of calls of the service.
 * `lost` has the reasons for which pages were lost. Both are empty at the start of each test.
 */
export function useFetchRealm() {
  const here: Partial<PageRunRequest> = { mode: "network-isolate", timeoutMs: 120_000 };
  let host: ReachableHost;
  const arrived: string[] = [];
  const lost: string[] = [];

  /** Handles a request to the local host. URLs with `late` get no response, and URLs with `moved` get a redirect after 100 ms. */
  function answer(request: IncomingMessage, response: ServerResponse): void {
    const { url = "" } = request;
    arrived.push(url);
    response.setHeader("Access-Control-Allow-Origin", "*");
    if (url.includes("late")) return;
    if (url.includes("moved")) setTimeout(() => response.writeHead(307, { location: "/elsewhere" }).end(), 100);
    else response.end("answered");
  }

  const execute = (body: string, before = "") =>
    `const url = ${JSON.stringify(host.url)}; ${before}; const execute = async () => { ${body} }`;
  const service: PageRunRequest["service"] = {
    base: "http://service.example/",
    async send({ url }) {
      arrived.push(new URL(url).pathname);
      return { status: 200, headers: {}, text: (async function* () {})() };
    },
  };
  const SERVICE_CALL_CODE = "await globalThis.__svcService.call('GET', 'http://service.example/once', {}, null)";
  const browsers = () => host.browsers;
  const next = () => resultOf(browsers(), execute("return (await fetch(url + '/next')).text()"), here);

  before(async () => {
    host = await reachableHost(answer, { onLoss: (kind) => void lost.push(kind) });
  });
  beforeEach(() => {
    arrived.length = 0;
    lost.length = 0;
  });
  after(() => host.stop());
  return { browsers, here, execute, service, SERVICE_CALL_CODE, next, lost, arrived };
}
