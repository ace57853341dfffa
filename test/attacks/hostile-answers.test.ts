/** Tests hosts that send invalid or endless responses to the service. Each request must end, and must not delay other requests. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { createAddressCheckedConnections } from "../../src/engine/checked-connections.js";
import { systemHostResolver } from "../../src/engine/public-lookup.js";
import { startAlertHook } from "../harness/alert-hook.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { PUSH_KEYS } from "./numbered-app.js";

const LIMIT_MS = 300;
const SWITCHING_RESPONSE = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\nConnection: Upgrade\r\n\r\n";
const EMPTY = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/** Responses by title, each with the HTTP status that the sender of the request gets. The status is null if the request fails. */
const HOSTILE_RESPONSES: Readonly<Record<string, readonly [text: string, status: number | null]>> = {
  "a switch to another protocol": [SWITCHING_RESPONSE, 101],
  "a switch, and an answer behind it": [SWITCHING_RESPONSE + EMPTY, 101],
  "a switch that names no protocol": ["HTTP/1.1 101 Switching Protocols\r\n\r\n", 101],
  "an answer that could switch": [EMPTY.replace("\r\n\r\n", "\r\nUpgrade: other\r\nConnection: Upgrade\r\n\r\n"), 200],
  "two answers": [EMPTY + EMPTY.replace("200", "500"), 200],
  "words before the answer alone": ["HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n", null],
  "two lengths": [EMPTY.replace("\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), null],
  "no HTTP": ["hello", null],
  nothing: ["", null],
};

/** Maximum concurrent requests of one app, the same as in alert-delivery.ts and push-sender.ts. */
const REQUESTS_PER_APP = { alerts: 4, pushes: 10 };

/** Starts a host that responds to the first data of a connection with `text`. If `endsAfterText` is true, it then closes the connection. */
async function startHost(text: string, endsAfterText: boolean) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined).once("data", () => (endsAfterText ? socket.end(text) : socket.write(text)));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  const stop = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { url, sockets, stop };
}

describe("hosts that respond with anything to the service", () => {
  const createConnections = (answerLimitMs: number) =>
    createAddressCheckedConnections({
      mayReach: () => true,
      resolve: systemHostResolver,
      responseTimeoutMs: answerLimitMs,
    });

  for (const [name, [text, status]] of Object.entries(HOSTILE_RESPONSES)) {
    for (const hostEnds of [false, true]) {
      it(`${name}${hostEnds ? ", and the end" : ""}: the request ends, and its connection is released`, async () => {
        const host = await startHost(text, hostEnds);
        const readStatus = (request: Promise<{ status: number }>) =>
          request.then(
            (answer) => answer.status,
            () => null,
          );
        // A request whose response never ends needs the short time limit. A valid response may take longer on a busy machine.
        const limitMs = status === null ? LIMIT_MS : 60_000;
        const connections = createConnections(limitMs);
        const sent = connections.request(host.url, { method: "POST", headers: {}, body: "{}" });
        const downloaded = connections.download(host.url, { maxBytes: 1_000, timeoutMs: limitMs });
        expect(await Promise.all([readStatus(sent), readStatus(downloaded)])).to.deep.equal([status, status]);
        host.stop();
      });
    }
  }

  describe("and other requests beside them", function () {
    this.timeout(180_000);
    let service: TestService;
    let hook: Awaited<ReturnType<typeof startAlertHook>>;
    let otherAppId: number;
    let rulesMade = 0;
    const hosts: { stop(): void }[] = [];

    before(async () => {
      const roles = { ROLES: "api,scheduler", ALLOW_PRIVATE_NETWORK: "1" };
      [service, hook] = await Promise.all([startTestService(roles), startAlertHook()]);
      const other = "INSERT INTO app (organization_id, name) VALUES ($1, 'other') RETURNING id";
      otherAppId = (await rows<{ id: number }>(service.db, other, [service.organizationId]))[0]!.id;
    });
    afterEach(() => {
      for (const host of hosts.splice(0)) host.stop();
    });
    after(() => Promise.all([service.stop(), hook.stop()]));

    async function startHttpHost(text: string) {
      const host = await startHost(text, false);
      hosts.push(host);
      return host;
    }

    /** Returns the path of the new alert rule. */
    async function createAlertRule(appId: number, url: string): Promise<string> {
      const path = `/v1/apps/${appId}`;
      const as = "admin";
      await service.rest("POST", `${path}/settings`, { as, body: { __to: { url, secret: "a-secret-to-sign-with" } } });
      const rule = { name: `rule ${++rulesMade}`, condition: "failed", channel: "webhook", setting: "__to" };
      const { http, body } = await service.rest("POST", `${path}/alerts`, { as, body: rule });
      expect(http, JSON.stringify(body)).to.equal(201);
      return `${path}/alerts/${body.alert.id}`;
    }

    const sendTestAlert = (path: string) => service.rest("POST", `${path}/test`, { as: "admin" });

    /** Creates an alert rule, and sends its test alert. Returns the path of the rule. */
    async function sendAlert(appId: number, url: string): Promise<string> {
      const path = await createAlertRule(appId, url);
      await sendTestAlert(path);
      return path;
    }

    longTest("a host that switches the protocol does not delay alerts of others", async () => {
      const odd = await startHttpHost(SWITCHING_RESPONSE);
      const path = await sendAlert(service.appId, odd.url.href);
      const readLastDelivery = async () =>
        (await service.rest("GET", `${path}/deliveries`, { as: "admin" })).body.deliveries[0];
      await until(async () => (await readLastDelivery()).status !== "queued");
      const received = hook.receivedAlerts.length;
      await sendAlert(otherAppId, hook.url);
      await until(() => hook.receivedAlerts.length > received);
      expect(await readLastDelivery()).to.include({ status: "failed", detail: "HTTP 101" });
    });

    it("a host that never responds to one app's alerts does not delay those of other apps", async () => {
      const silent = await startHttpHost("");
      // The test creates all rules before it sends the first alert. Otherwise, the first requests could reach their time limit meanwhile.
      const rules: string[] = [];
      for (let rule = 0; rule < 20; rule += 1) rules.push(await createAlertRule(service.appId, silent.url.href));
      const otherRule = await createAlertRule(otherAppId, hook.url);
      const received = hook.receivedAlerts.length;
      await Promise.all(rules.map(sendTestAlert));
      await until(() => silent.sockets.size >= REQUESTS_PER_APP.alerts);
      await sendTestAlert(otherRule);
      await until(() => hook.receivedAlerts.length > received);
      // The requests to the silent host have not ended: otherwise the app's next request would have opened another connection.
      expect(silent.sockets.size).to.equal(REQUESTS_PER_APP.alerts);
    });

    longTest(
      "a host that never responds to a thousand devices of one app does not delay those of other apps",
      async () => {
        const [silent, ready] = [await startHttpHost(""), await startHttpHost(EMPTY)];
        await pushed(service.appId, silent.url, 1_100);
        await until(() => silent.sockets.size >= REQUESTS_PER_APP.pushes);
        await pushed(otherAppId, ready.url, 1);
        await until(() => ready.sockets.size > 0);
        expect(silent.sockets.size).to.equal(REQUESTS_PER_APP.pushes);
      },
    );

    async function pushed(appId: number, { href }: URL, devices: number): Promise<void> {
      const add = `INSERT INTO push_subscription (app_id, reader, endpoint, p256dh, auth)
                   SELECT $1, 'r' || n, $2::text || n, $3, $4 FROM generate_series(1, $5::int) AS n`;
      await service.db.query(add, [appId, href, PUSH_KEYS.p256dh, PUSH_KEYS.auth, devices]);
      const body = { status: "published", data: { title: "t" }, pushNotification: { payload: {} } };
      const { http } = await service.rest("POST", `/v1/apps/${appId}/notifications`, { as: "admin", body });
      expect(http).to.equal(201);
    }
  });
});
