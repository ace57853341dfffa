/** Hosts that an app names answer the service itself whatever they like: each request ends, and nobody else's waits for it. */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect } from "chai";
import { createCheckedConnections } from "../../src/engine/checked-connections.js";
import { startAlertHook } from "../harness/alert-hook.js";
import { startTestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const LIMIT_MS = 300;
const SWITCH = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\nConnection: Upgrade\r\n\r\n";
const EMPTY = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/** What is answered, by its name, and the status that is made of it; null where there is none. */
const ANSWERS: Readonly<Record<string, readonly [text: string, status: number | null]>> = {
  "a switch to another protocol": [SWITCH, 101],
  "a switch, and an answer behind it": [SWITCH + EMPTY, 101],
  "a switch that names no protocol": ["HTTP/1.1 101 Switching Protocols\r\n\r\n", 101],
  "an answer that could switch": [EMPTY.replace("\r\n\r\n", "\r\nUpgrade: other\r\nConnection: Upgrade\r\n\r\n"), 200],
  "two answers": [EMPTY + EMPTY.replace("200", "500"), 200],
  "words before the answer alone": ["HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n", null],
  "two lengths": [EMPTY.replace("\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), null],
  "no HTTP": ["hello", null],
  nothing: ["", null],
};

/** A host that answers whoever has said something, and hears nothing more. */
async function startHost(text: string, thenEnds: boolean) {
  const server = createServer((socket) => {
    socket.on("error", () => undefined).once("data", () => (thenEnds ? socket.end(text) : socket.write(text)));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  return { url, stop: () => server.close() };
}

describe("hosts that answer the service as they like", function () {
  this.timeout(5_000);
  const connections = createCheckedConnections({ mayReach: () => true, answerLimitMs: LIMIT_MS });

  for (const [name, [text, status]] of Object.entries(ANSWERS)) {
    for (const thenEnds of [false, true]) {
      it(`${name}${thenEnds ? ", and the end" : ""}: what was sent and what is fetched is over`, async () => {
        const host = await startHost(text, thenEnds);
        const told = (asked: Promise<{ status: number }>) =>
          asked.then(
            (answer) => answer.status,
            () => null,
          );
        const sent = connections.request(host.url, { method: "POST", headers: {}, body: "{}" });
        const fetched = connections.download(host.url, { maxBytes: 1_000, limitMs: LIMIT_MS });
        expect(await Promise.all([told(sent), told(fetched)])).to.deep.equal([status, status]);
        host.stop();
      });
    }
  }

  it("keep nobody else's alerts", async function () {
    this.timeout(30_000);
    const service = await startTestService({ ROLES: "api", ALLOW_PRIVATE_NETWORK: "1" });
    const [odd, hook] = [await startHost(SWITCH, false), await startAlertHook()];
    const secret = "a-secret-to-sign-with";
    const settings = { __odd: { url: odd.url.href, secret }, __hook: { url: hook.url, secret } };
    await service.rest("POST", `/v1/apps/${service.appId}/settings`, { body: settings });
    const path = `/v1/apps/${service.appId}/alerts`;
    const test = async (setting: string) => {
      const rule = { name: setting, condition: "failed", channel: "webhook", setting };
      const { alert } = (await service.rest("POST", path, { body: rule })).body;
      await service.rest("POST", `${path}/${alert.id}/test`);
      return alert.id as number;
    };
    const id = await test("__odd");
    const lastOf = async () => (await service.rest("GET", `${path}/${id}/deliveries`)).body.deliveries[0];
    await until(async () => (await lastOf()).status !== "queued");
    await test("__hook");
    await until(() => hook.heard.length > 0);
    expect(await lastOf()).to.include({ status: "failed", detail: "HTTP 101" });
    await Promise.all([service.stop(), hook.stop(), odd.stop()]);
  });
});
