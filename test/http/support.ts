/** Creates actions with HTTP triggers, and sends raw requests to them, because `fetch` would normalize paths and headers. */

import { request as sendHttp } from "node:http";
import { expect } from "chai";
import type { HttpWhere } from "../../src/data/action-types.js";
import type { TestService } from "../harness/service.js";

export const ECHO = "async function execute(context) { return context.payload; }";

export interface Received {
  http: number;
  headers: Record<string, string | undefined>;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: each route returns another type
  json: any;
}

export interface Sent {
  method?: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
}

/** Sends a request to exactly this path. */
export function send(url: string, path: string, { method = "GET", headers = {}, body }: Sent = {}): Promise<Received> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
    const request = sendHttp({ hostname, port, path, method, headers: { ...length, ...headers } }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk)).on("error", reject);
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        const isJson = response.headers["content-type"]?.includes("json") && text !== "";
        const flat = response.headers as Record<string, string | undefined>;
        resolve({ http: response.statusCode!, headers: flat, text, json: isJson ? JSON.parse(text) : undefined });
      });
    });
    request.on("error", reject);
    request.end(body);
  });
}

export interface MadeAction {
  id: number;
  // biome-ignore lint/suspicious/noExplicitAny: an action has no static type here
  action: any;
}

let names = 0;

/** Creates an active action with an HTTP trigger at `where`, and publishes it unless `publish` is false. */
export async function makeAction(
  service: TestService,
  where: HttpWhere,
  { code = ECHO, publish = true, ...more }: { code?: string; publish?: boolean } & Record<string, unknown> = {},
): Promise<MadeAction> {
  names += 1;
  const actions = `/v3/apps/${service.appId}/actions`;
  const data = { name: `hook-${names}`, code, active: true, triggers: [{ trigger: "http", where }], ...more };
  const { http, body } = await service.rest("POST", actions, { body: data });
  expect(http, JSON.stringify(body)).to.equal(201);
  const { id } = body.action;
  if (publish) {
    const published = await service.rest("POST", `${actions}/${id}/publish`);
    expect(published.http, JSON.stringify(published.body)).to.equal(200);
  }
  return { id, action: body.action };
}

export async function publishApp(service: TestService): Promise<void> {
  expect((await service.rest("POST", `/v1/apps/${service.appId}/publish`)).http).to.equal(200);
}
