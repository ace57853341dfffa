/** A service and a local TLS server that receives requests of its server actions; for tests of secret bindings. */
import { once } from "node:events";
import type { IncomingMessage, RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { tlsServer, trustLocalhost } from "../harness/localhost-tls.js";
import { startTestService, type TestService } from "../harness/service.js";

export const SECRET = "sk_live_4eC39HqLyjWDarjtT1zdp7dc";
export const OTHER = "sk_live_another_value_0123456789";
const MANUAL = { active: true, triggers: [{ trigger: "manual" }] };

/** Body of `execute` that sends one request with `payload.options` to `payload.origin`. Returns the response, or the error. */
export const REQUEST_CODE = `try { const { status, headers, body } = await request({ url: payload.origin + "/x", ...payload.options });
      return { status, headers, body: typeof body === "string" ? body : [...body] }; } catch (error) { return { code: error.code, message: error.message }; }`;

export class BoundRequests {
  /** Handler of the server's next responses. */
  answer: RequestListener = (_request, response) => response.end("fine");
  /** Requests that the server received. Each has its body as `text`. */
  received: IncomingMessage[] = [];
  private made = 0;
  private readonly server = tlsServer((request, response) => {
    this.received.push(request);
    let text = "";
    request.setEncoding("utf8").on("data", (part: string) => {
      text += part;
    });
    request.once("end", () => this.answer(Object.assign(request, { text }), response));
  });

  private constructor(
    readonly service: TestService,
    private readonly undoTrust: () => void,
  ) {}

  static async start(): Promise<BoundRequests> {
    const undoTrust = trustLocalhost();
    const limits = { RATE_LIMIT_MANAGE: "0", RATE_LIMIT_RUN: "0" };
    const started = new BoundRequests(
      await startTestService({ ROLES: "api,runner", ALLOW_PRIVATE_NETWORK: "1", ...limits }),
      undoTrust,
    );
    started.server.listen(0, "127.0.0.1");
    await once(started.server, "listening");
    return started;
  }

  async stop(): Promise<void> {
    await this.service.stop();
    this.server.closeAllConnections();
    this.server.close();
    this.undoTrust();
  }

  reset(): void {
    this.received = [];
    this.answer = (_request, response) => response.end("fine");
  }

  get origin(): string {
    return `https://localhost:${(this.server.address() as AddressInfo).port}`;
  }

  get path(): string {
    return `/v1/apps/${this.service.appId}/secret-bindings`;
  }

  put(bindings: unknown, more: object = {}) {
    return this.service.rest("PUT", this.path, { body: { bindings }, ...more });
  }

  async bind(bindings: unknown): Promise<void> {
    const { http, body } = await this.put(bindings);
    expect(http, JSON.stringify(body)).to.equal(200);
  }

  async set(settings: object): Promise<void> {
    const { http, body } = await this.service.rest("POST", `/v1/apps/${this.service.appId}/settings`, {
      body: settings,
    });
    expect(http, JSON.stringify(body)).to.equal(200);
  }

  /** Creates a server action with this body of `execute` and runs it once. The body can use `request` and `payload.origin`. */
  async run(body: string, payload: object = {}, integrationOrigins = [this.origin]) {
    this.made += 1;
    const name = `bound-${this.made}`;
    const code = `async function execute({ payload, settings }) {
      const request = (options) => Svc.App.V3.Actions.request(options); ${body} }`;
    const actions = `/v3/apps/${this.service.appId}/actions`;
    await this.service.rest("POST", actions, { body: { name, code, ...MANUAL, integrationOrigins } });
    const sent = { body: { origin: this.origin, ...payload } };
    return (await this.service.rest("POST", `${actions}/${name}/runWithResult`, sent)).body;
  }
}
