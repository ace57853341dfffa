/** Samples of signed requests, one for each signature scheme, built as the sender's documentation describes. */
import { createHash, createHmac, createSign, generateKeyPairSync } from "node:crypto";
import type { HttpAuth, SignatureScheme } from "../../src/data/action-types.js";

export type SignatureAuth = Extract<HttpAuth, { type: "signature" }>;

/**
 * Sample of one signature scheme. `key` is the value of the app's setting `auth.setting`. `signed` lists the headers that the signature
 * covers, and the headers that contain the signature. All header names are in lower case.
 */
export interface Sample {
  name: string;
  auth: SignatureAuth;
  key: string;
  isTimed: boolean;
  /** Builds the request. @param url URL that the sender signs @param time time of the signature in Unix seconds */
  make(body: string, url: string, time: number): { headers: Record<string, string>; url: string; body: string };
  signed: readonly string[];
}

const hmac = (algorithm: string, key: string | Buffer, text: string, encoding: "hex" | "base64") =>
  createHmac(algorithm, key).update(text).digest(encoding);

const auth = (scheme: SignatureScheme, more: Partial<SignatureAuth> = {}): SignatureAuth => ({
  type: "signature",
  scheme,
  setting: `__${scheme}`,
  ...more,
});

const JSON_TYPE = { "content-type": "application/json" };
export const STANDARD_KEY = `whsec_${Buffer.from("a secret of thirty-two bytes, or so").toString("base64")}`;
const pair = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
export const SENDGRID_KEY = pair.publicKey.export({ type: "spki", format: "der" }).toString("base64");

const SENDGRID_HEADER = "x-twilio-email-event-webhook";

export const SAMPLES: readonly Sample[] = [
  {
    name: "standard-webhooks",
    auth: auth("standard-webhooks"),
    key: STANDARD_KEY,
    isTimed: true,
    make: (body, url, time) => {
      const key = Buffer.from(STANDARD_KEY.slice("whsec_".length), "base64");
      const signature = hmac("sha256", key, `msg_1.${time}.${body}`, "base64");
      const signed = {
        "webhook-id": "msg_1",
        "webhook-timestamp": String(time),
        "webhook-signature": `v1,${signature}`,
      };
      return { headers: { ...JSON_TYPE, ...signed }, url, body };
    },
    signed: ["webhook-id", "webhook-timestamp", "webhook-signature"],
  },
  {
    name: "stripe",
    auth: auth("stripe"),
    key: "whsec_test_secret",
    isTimed: true,
    make: (body, url, time) => {
      const signature = hmac("sha256", "whsec_test_secret", `${time}.${body}`, "hex");
      return { headers: { ...JSON_TYPE, "stripe-signature": `t=${time},v1=${signature}` }, url, body };
    },
    signed: ["stripe-signature"],
  },
  {
    name: "github",
    auth: auth("github"),
    key: "It's a Secret to Everybody",
    isTimed: false,
    make: (body, url) => {
      const signature = hmac("sha256", "It's a Secret to Everybody", body, "hex");
      return { headers: { ...JSON_TYPE, "x-hub-signature-256": `sha256=${signature}` }, url, body };
    },
    signed: ["x-hub-signature-256"],
  },
  {
    name: "slack",
    auth: auth("slack"),
    key: "8f742231b10e8888abcd99yyyzzz85a5",
    isTimed: true,
    make: (body, url, time) => {
      const signature = hmac("sha256", "8f742231b10e8888abcd99yyyzzz85a5", `v0:${time}:${body}`, "hex");
      const headers = { "x-slack-signature": `v0=${signature}`, "x-slack-request-timestamp": String(time) };
      return { headers: { ...JSON_TYPE, ...headers }, url, body };
    },
    signed: ["x-slack-signature", "x-slack-request-timestamp"],
  },
  {
    name: "shopify",
    auth: auth("shopify"),
    key: "hush",
    isTimed: false,
    make: (body, url) => ({
      headers: { ...JSON_TYPE, "x-shopify-hmac-sha256": hmac("sha256", "hush", body, "base64") },
      url,
      body,
    }),
    signed: ["x-shopify-hmac-sha256"],
  },
  {
    name: "twilio, JSON",
    auth: auth("twilio"),
    key: "12345",
    isTimed: false,
    make: (body, url) => {
      const signed = `${url}?bodySHA256=${createHash("sha256").update(body).digest("hex")}`;
      const headers = { ...JSON_TYPE, "x-twilio-signature": hmac("sha1", "12345", signed, "base64") };
      return { headers, url: signed, body };
    },
    signed: ["x-twilio-signature"],
  },
  {
    name: "twilio, form",
    auth: auth("twilio"),
    key: "12345",
    isTimed: false,
    make: (body, url) => {
      const form = new URLSearchParams({ From: "+49 30 123", Body: body, Account: "AC1" });
      const text =
        url +
        [...form.keys()]
          .sort()
          .map((name) => name + form.get(name))
          .join("");
      const headers = {
        "content-type": "application/x-www-form-urlencoded",
        "x-twilio-signature": hmac("sha1", "12345", text, "base64"),
      };
      return { headers, url, body: form.toString() };
    },
    signed: ["x-twilio-signature"],
  },
  {
    name: "sendgrid",
    auth: auth("sendgrid"),
    key: SENDGRID_KEY,
    isTimed: true,
    make: (body, url, time) => {
      const signature = createSign("sha256").update(`${time}${body}`).sign(pair.privateKey, "base64");
      const headers = {
        ...JSON_TYPE,
        [`${SENDGRID_HEADER}-signature`]: signature,
        [`${SENDGRID_HEADER}-timestamp`]: String(time),
      };
      return { headers, url, body };
    },
    signed: [`${SENDGRID_HEADER}-signature`, `${SENDGRID_HEADER}-timestamp`],
  },
  {
    name: "hmac in hex",
    auth: auth("hmac", { header: "X-Signature", prefix: "sha256=" }),
    key: "generic",
    isTimed: false,
    make: (body, url) => ({
      headers: { ...JSON_TYPE, "x-signature": `sha256=${hmac("sha256", "generic", body, "hex")}` },
      url,
      body,
    }),
    signed: ["x-signature"],
  },
  {
    name: "hmac in base64, with a time",
    auth: auth("hmac", { header: "X-Sign", algorithm: "sha512", encoding: "base64", timestampHeader: "X-Time" }),
    key: "generic",
    isTimed: true,
    make: (body, url, time) => ({
      headers: {
        ...JSON_TYPE,
        "x-sign": hmac("sha512", "generic", `${time}.${body}`, "base64"),
        "x-time": String(time),
      },
      url,
      body,
    }),
    signed: ["x-sign", "x-time"],
  },
];

/** Keys of all samples, as settings of an app. */
export const KEY_SETTINGS: Record<string, string> = Object.fromEntries(
  SAMPLES.map(({ auth: { setting }, key }) => [setting, key]),
);
