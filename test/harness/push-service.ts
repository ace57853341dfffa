/** A browser vendor's push service on loopback, and devices with subscriptions, which decrypt the messages of Svc App Actions. */
import { createECDH, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

const ece = createRequire(createRequire(import.meta.url).resolve("web-push"))("http_ece") as {
  decrypt(body: Buffer, how: object): Buffer;
};

export interface PushRequest {
  url: string;
  body: Buffer;
  headers: Record<string, unknown>;
}

export interface PushDevice {
  /** Subscription as browsers send it. */
  subscription: { endpoint: string; keys: { p256dh: string; auth: string } };
  /** Decrypts a message for this device. */
  decrypt(body: Buffer): Record<string, unknown>;
}

export interface PushService {
  /** Messages that the push service received. */
  pushed: PushRequest[];
  /** HTTP status of the push service's next responses. */
  answer: number;
  /** @param name path of the device's endpoint */
  device(name: string): PushDevice;
  stop(): void;
}

export function pushDevice(endpoint: string): PushDevice {
  const keys = createECDH("prime256v1");
  const p256dh = keys.generateKeys("base64url");
  const auth = randomBytes(16).toString("base64url");
  return {
    subscription: { endpoint, keys: { p256dh, auth } },
    decrypt: (body) =>
      JSON.parse(ece.decrypt(body, { version: "aes128gcm", privateKey: keys, authSecret: auth }).toString()),
  };
}

/**
 * Returns a script that makes a page's PushManager subscribe this device. Without Google's API keys, Chromium itself has no push service.
 */
export const pushManagerOf = ({ subscription }: PushDevice): string => `{
  let current = null;
  const unsubscribe = async () => (current = null) === null;
  const subscription = ${JSON.stringify(subscription)};
  PushManager.prototype.getSubscription = async () => current;
  PushManager.prototype.subscribe = async ({ applicationServerKey: { buffer } }) =>
    (current = { unsubscribe, endpoint: subscription.endpoint, options: { applicationServerKey: buffer },
                 toJSON: () => subscription });
}`;

export async function startPushService(): Promise<PushService> {
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      started.pushed.push({ url: request.url!, body, headers: request.headers });
      response.writeHead(started.answer).end();
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  const started: PushService = {
    pushed: [],
    answer: 201,
    device: (name) => pushDevice(`http://127.0.0.1:${port}/${name}`),
    stop: () => void server.close(),
  };
  return started;
}
