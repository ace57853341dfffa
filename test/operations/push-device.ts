/** Acts as a browser that has registered for push messages: has keys, and decrypts what the push service receives for it. */
import { createECDH } from "node:crypto";
import type { Server } from "node:http";
import { createRequire } from "node:module";

const ece = createRequire(createRequire(import.meta.url).resolve("web-push"))("http_ece") as {
  decrypt(body: Buffer, how: object): Buffer;
};

/** Creates a device with an endpoint at this push service. */
export function pushDevice(name: string, pushService: Server) {
  const keys = createECDH("prime256v1");
  const p256dh = keys.generateKeys("base64url");
  const auth = Buffer.alloc(16, name).toString("base64url");
  const { port } = pushService.address() as { port: number };
  const subscription = { endpoint: `http://127.0.0.1:${port}/${name}`, keys: { p256dh, auth } };
  const opened = (body: Buffer) =>
    JSON.parse(ece.decrypt(body, { version: "aes128gcm", privateKey: keys, authSecret: auth }).toString());
  return { subscription, opened };
}
