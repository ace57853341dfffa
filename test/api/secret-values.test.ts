/** Secret bindings: responses that contain the value, and sealed keys. */
import { once } from "node:events";
import type { IncomingMessage, RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { tlsServer, trustLocalhost } from "../harness/localhost-tls.js";
import { startTestService, type TestService } from "../harness/service.js";
import { ECHOES } from "./echo-forms.js";

const SECRET = "sk_live_4eC39HqLyjWDarjtT1zdp7dc";
const OTHER = "sk_live_another_value_0123456789";
const MANUAL = { active: true, triggers: [{ trigger: "manual" }] };

describe("values of secret bindings", () => {
  let service: TestService;
  let path: string;
  let undoTrust: () => void;
  let origin: string;
  let answer: RequestListener;
  let received: IncomingMessage[] = [];
  let made = 0;

  const server = tlsServer((request, response) => {
    received.push(request);
    let text = "";
    request.setEncoding("utf8").on("data", (part: string) => {
      text += part;
    });
    request.once("end", () => answer(Object.assign(request, { text }), response));
  });

  before(async () => {
    undoTrust = trustLocalhost();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    origin = `https://localhost:${(server.address() as AddressInfo).port}`;
    service = await startTestService({ ALLOW_PRIVATE_NETWORK: "1", RATE_LIMIT_MANAGE: "0", RATE_LIMIT_RUN: "0" });
    path = `/v1/apps/${service.appId}/secret-bindings`;
  });
  after(async () => {
    await service.stop();
    server.closeAllConnections();
    server.close();
    undoTrust();
  });
  beforeEach(() => {
    received = [];
    answer = (_request, response) => response.end("fine");
  });

  const put = (bindings: unknown, more: object = {}) => service.rest("PUT", path, { body: { bindings }, ...more });
  const set = async (settings: object) => {
    const { http, body } = await service.rest("POST", `/v1/apps/${service.appId}/settings`, { body: settings });
    expect(http, JSON.stringify(body)).to.equal(200);
  };
  async function bind(bindings: unknown): Promise<void> {
    const { http, body } = await put(bindings);
    expect(http, JSON.stringify(body)).to.equal(200);
  }
  async function run(body: string, payload: object = {}, origins = [origin]) {
    made += 1;
    const name = `bound-${made}`;
    const code = `async function execute({ payload, settings }) { const { request } = Svc.App.V3.Actions; ${body} }`;
    const action = {
      name,
      code: code.replace(
        "const { request } = Svc.App.V3.Actions;",
        "const request = (options) => Svc.App.V3.Actions.request(options);",
      ),
      ...MANUAL,
      integrationOrigins: origins,
    };
    await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: action });
    const { body: result } = await service.rest("POST", `/v3/apps/${service.appId}/actions/${name}/runWithResult`, {
      body: { origin, ...payload },
    });
    return result;
  }
  const call = `try { const { status, headers, body } = await request({ url: payload.origin + "/x", ...payload.options });
      return { status, headers, body: typeof body === "string" ? body : [...body] }; } catch (error) { return { code: error.code, message: error.message }; }`;

  describe("and responses that echo the value", () => {
    before(async () => {
      await set({ __key: SECRET });
      await bind([{ key: "__key", origin, in: "header", sealed: true }]);
    });

    it("never give it to code, in any of these forms, as text, JSON and bytes", async () => {
      let echo = ECHOES[0]![1];
      answer = (_request, response) => {
        const { body, headers = {} } = echo(SECRET);
        response.writeHead(200, headers).end(body);
      };
      for (const [title, next] of ECHOES) {
        echo = next;
        for (const responseType of ["text", "bytes"]) {
          const { result, error } = await run(call, { options: { auth: "__key", responseType } });
          const { body } = next(SECRET);
          const isCompressed = next(SECRET).headers?.["content-encoding"] !== undefined;
          const seen = responseType === "bytes" ? Buffer.from(result?.body ?? []).toString() : result?.body;
          const got = JSON.stringify([result?.headers, seen]);
          expect(result?.status, `${title} ${error}`).to.equal(200);
          expect(got, title).to.include("__key").and.not.include(SECRET);
          if (typeof body === "string" && body !== "" && !isCompressed) expect(result.body, title).to.not.equal(body);
          if (Buffer.isBuffer(body)) expect(result.body, title).to.not.deep.equal([...body]);
        }
      }
      const { runId } = await run(call, { options: { auth: "__key" } });
      const { lines } = (await service.rest("GET", `/v3/apps/${service.appId}/runs/${runId}/console`)).body;
      expect(JSON.stringify(lines)).to.include("held the value of the setting __key").and.not.include(SECRET);
    });

    it("leave honest responses as they are", async () => {
      const honest = { body: "sk_live is how keys begin; dGVzdA== 00ff «not a key»", headers: { "x-a": "b" } };
      answer = (_request, response) => response.writeHead(200, honest.headers).end(honest.body);
      const { result } = await run(call, { options: { auth: "__key" } });
      expect(result.body).to.equal(honest.body);
    });
  });

  describe("that are sealed", () => {
    const destination = () => ({ key: "__sealed", origin, in: "header", name: "X-Key" });
    const isVisible = async () =>
      (await run("return [settings.__sealed !== undefined, Svc.App.Settings.get('__sealed') !== undefined];")).result;

    beforeEach(async () => {
      await service.db.query("DELETE FROM sealed_setting; DELETE FROM secret_bindings");
      await set({ __sealed: SECRET });
      expect(await isVisible()).to.deep.equal([true, true]);
      await bind([{ ...destination(), sealed: true }]);
    });

    it("take the key out of context.settings, and still send it", async () => {
      expect(await isVisible()).to.deep.equal([false, false]);
      await run(call, { options: { auth: "__sealed" } });
      expect(received[0]!.headers["x-key"]).to.equal(SECRET);
    });

    for (const [title, change] of [
      ["unsealing", [{ sealed: false }]],
      ["another origin", [{ sealed: true, origin: "https://evil.example" }]],
      ["a second origin", [{ sealed: true }, { sealed: true, origin: "https://evil.example" }]],
      ["another header", [{ sealed: true, name: "X-Echo" }]],
      ["another place", [{ sealed: true, in: "query" }]],
      ["another format", [{ sealed: true, format: "x{value}" }]],
      [
        "oauth2",
        [
          {
            sealed: true,
            in: "oauth2",
            name: null,
            tokenUrl: "https://evil.example/t",
            clientId: "c",
            grant: "client_credentials",
          },
        ],
      ],
    ] as const) {
      it(`require the value for ${title}`, async () => {
        const bindings = change.map((one) => ({ ...destination(), ...one }));
        const refused = await put(bindings);
        expect([refused.http, refused.body.status]).to.deep.equal([403, "FORBIDDEN"]);
        // By a detour over an empty list, it is sealed all the same.
        await bind([]);
        expect(await isVisible()).to.deep.equal([false, false]);
        expect((await put(bindings)).http).to.equal(403);
        expect((await put([{ ...destination(), sealed: true }])).http).to.equal(403);
        expect((await put(bindings.map((one) => ({ ...one, value: OTHER })))).http).to.equal(200);
      });
    }

    it("may be sent back as they were read, and keep the seal when the setting is replaced or deleted", async () => {
      const { bindings } = (await service.rest("GET", path)).body;
      await bind(bindings);
      await set({ __sealed: OTHER });
      expect(await isVisible()).to.deep.equal([false, false]);
      await service.rest("DELETE", `/v1/apps/${service.appId}/settings`, { body: { keys: ["__sealed"] } });
      await set({ __sealed: SECRET });
      expect(await isVisible()).to.deep.equal([false, false]);
      await bind([{ ...destination(), sealed: false, value: OTHER }]);
      expect(await isVisible()).to.deep.equal([true, true]);
    });
  });
});
