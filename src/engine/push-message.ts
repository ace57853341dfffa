/** Builds a Web Push request: encrypted for one device (RFC 8291), signed with the app's key (RFC 8292). Sends nothing. */
import webPush from "web-push";

export interface VapidKeys {
  /** Public key in base64url. */
  publicKey: string;
  privateKey: string;
}

interface EncryptedPushRequest {
  url: URL;
  headers: Record<string, string | number>;
  body: Buffer;
}

/** Time for which a push service stores a message if the device is offline. */
const MESSAGE_STORAGE_SECONDS = 24 * 60 * 60;

export const generateVapidKeys = (): VapidKeys => webPush.generateVAPIDKeys();

/**
 * Builds the request that sends `payload` to a device.
 * @param topic a later message with the same topic replaces this one while the push service stores it (RFC 8030, 5.4)
 * @param subject contact of the operator for the push service, as a `mailto:` or `https:` URL
 */
export function createPushRequest(
  target: { endpoint: string; p256dh: string; auth: string },
  payload: string,
  { publicKey, privateKey, subject, topic }: VapidKeys & { subject: string; topic: string },
): EncryptedPushRequest {
  const { endpoint, p256dh, auth } = target;
  const details = webPush.generateRequestDetails({ endpoint, keys: { p256dh, auth } }, payload, {
    TTL: MESSAGE_STORAGE_SECONDS,
    topic,
    contentEncoding: "aes128gcm",
    vapidDetails: { subject, publicKey, privateKey },
  });
  const headers = details.headers as Record<string, string | number>;
  return { url: new URL(details.endpoint), headers, body: details.body as Buffer };
}
