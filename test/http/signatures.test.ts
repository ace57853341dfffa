/**
 * Tests the verification of webhook signatures without a service: signatures from the senders' libraries, changed requests, clocks that
 * differ, and rotated keys.
 */

import { Webhooks } from "@octokit/webhooks";
import sendgrid from "@sendgrid/eventwebhook";
import { expect } from "chai";
import fc from "fast-check";
import { Webhook } from "standardwebhooks";
import {
  hasValidSignature,
  parseSigningKeys,
  readWebhookEventId,
  type SignedRequest,
} from "../../src/rules/http/signatures.js";
import { SAMPLES, type Sample, SENDGRID_KEY, STANDARD_KEY } from "./signed-samples.js";

const NOW = 1_764_115_200;
const URL = "https://example.com/h/1/hook";
const BODIES = [
  '{"id":"evt_1","text":"grüße\\r\\n 日本 🎉"}\r\n',
  "",
  "\r\n\r\n",
  `{"long":"${"x".repeat(1_000_000)}"}`,
];
const MUTATION_COUNT = 200;

interface SampleRequest {
  headers: Record<string, string>;
  url: string;
  body: string | Uint8Array;
}

const requestOf = ({ headers, url, body }: SampleRequest): SignedRequest => ({
  header: (name) => headers[name],
  body: typeof body === "string" ? Buffer.from(body) : body,
  urls: [url],
});

const acceptsSignature = (
  { auth, key }: Pick<Sample, "auth" | "key">,
  signed: SampleRequest,
  now = NOW,
  keys = [key],
): boolean => hasValidSignature(requestOf(signed), keys, auth, now);

const fieldsOf = (form: string): string => JSON.stringify([...new URLSearchParams(form)]);

const sampleOf = (name: string): Sample => SAMPLES.find((sample) => sample.name === name)!;

describe("signatures of webhooks", () => {
  for (const sample of SAMPLES) {
    describe(sample.name, () => {
      it("are accepted for the bytes as sent", () => {
        for (const body of BODIES)
          expect(acceptsSignature(sample, sample.make(body, URL, NOW)), body.slice(0, 20)).to.equal(true);
      });

      it(`are rejected after each of ${MUTATION_COUNT} mutations`, () => {
        const signed = sample.make(BODIES[0]!, URL, NOW);
        const parts = ["body", ...sample.signed, ...(sample.auth.scheme === "twilio" ? ["url"] : [])];
        const mutation = fc.record({
          part: fc.constantFrom(...parts),
          kind: fc.constantFrom("change", "remove", "add", "drop"),
          at: fc.nat(10_000),
          by: fc.constantFrom(..."abcdefABCDEF0189+/=,"),
        });
        fc.assert(
          fc.property(mutation, ({ part, kind, at, by }) => {
            const before = part === "body" ? signed.body : part === "url" ? signed.url : signed.headers[part]!;
            const point = at % before.length;
            const after = {
              change: before.slice(0, point) + by + before.slice(point + 1),
              remove: before.slice(0, point) + before.slice(point + 1),
              add: before.slice(0, point) + by + before.slice(point),
              drop: "",
            }[kind]!;
            fc.pre(after !== before);
            // Twilio signs the decoded fields of a form. So the signature stays valid if a mutation changes only the encoding of the fields.
            fc.pre(sample.name !== "twilio, form" || part !== "body" || fieldsOf(after) !== fieldsOf(before));
            const mutated =
              part === "body"
                ? { ...signed, body: after }
                : part === "url"
                  ? { ...signed, url: after }
                  : { ...signed, headers: { ...signed.headers, [part]: after } };
            expect(acceptsSignature(sample, mutated), `${part} ${kind} at ${point}: ${after.slice(0, 200)}`).to.equal(
              false,
            );
          }),
          { numRuns: MUTATION_COUNT, seed: 45 },
        );
      });

      it("are rejected without their headers, with another key and without one", () => {
        const signed = sample.make(BODIES[0]!, URL, NOW);
        for (const name of sample.signed) {
          const { [name]: _, ...headers } = signed.headers;
          expect(acceptsSignature(sample, { ...signed, headers }), name).to.equal(false);
        }
        const another = sample.name === "sendgrid" ? "another" : `${Buffer.from("another").toString("base64")}`;
        expect(acceptsSignature(sample, signed, NOW, [another])).to.equal(false);
        expect(acceptsSignature(sample, signed, NOW, [])).to.equal(false);
      });

      it("are accepted with either key during a rotation", () => {
        const signed = sample.make(BODIES[0]!, URL, NOW);
        expect(acceptsSignature(sample, signed, NOW, ["bmV3IGtleQ==", sample.key])).to.equal(true);
        expect(acceptsSignature(sample, signed, NOW, [sample.key, "b2xkIGtleQ=="])).to.equal(true);
      });

      if (sample.isTimed) {
        it("are rejected if their time is too far away, in the past and in the future", () => {
          const signed = sample.make(BODIES[0]!, URL, NOW);
          for (const skew of [-300, -1, 0, 1, 300])
            expect(acceptsSignature(sample, signed, NOW + skew), `${skew}`).to.equal(true);
          for (const skew of [-301, 301, -86_400, 86_400])
            expect(acceptsSignature(sample, signed, NOW + skew), `${skew}`).to.equal(false);
          const strict = { ...sample, auth: { ...sample.auth, toleranceSeconds: 5 } };
          expect([5, 6, -5, -6].map((skew) => acceptsSignature(strict, signed, NOW + skew))).to.deep.equal([
            true,
            false,
            true,
            false,
          ]);
        });
      }
    });
  }

  describe("of the senders' libraries", () => {
    it("@octokit/webhooks", async () => {
      const github = sampleOf("github");
      for (const body of BODIES.filter((text) => text !== "")) {
        const headers = { "x-hub-signature-256": await new Webhooks({ secret: github.key }).sign(body) };
        expect(acceptsSignature(github, { headers, url: URL, body })).to.equal(true);
      }
    });

    it("standardwebhooks, both ways", () => {
      const body = BODIES[0]!;
      const webhook = new Webhook(STANDARD_KEY);
      const time = new Date();
      const seconds = Math.floor(time.getTime() / 1000);
      const headers = {
        "webhook-id": "msg_2",
        "webhook-timestamp": String(seconds),
        "webhook-signature": `v1a,unknown ${webhook.sign("msg_2", time, body)}`,
      };
      expect(acceptsSignature(sampleOf("standard-webhooks"), { headers, url: URL, body }, seconds)).to.equal(true);
      const signed = sampleOf("standard-webhooks").make(body, URL, seconds);
      expect(webhook.verify(body, signed.headers)).to.deep.equal(JSON.parse(body));
    });

    it("@sendgrid/eventwebhook", () => {
      const { headers, body } = sampleOf("sendgrid").make(BODIES[0]!, URL, NOW);
      const library = new sendgrid.EventWebhook();
      const key = library.convertPublicKeyToECDSA(SENDGRID_KEY);
      const [signature, time] = sampleOf("sendgrid").signed.map((name) => headers[name]!) as [string, string];
      expect(library.verifySignature(key, body, signature, time)).to.equal(true);
    });

    // The signatures are constants, because loading these packages takes 2 s. test/long/webhook-clients.test.ts loads the packages.
    it("values that stripe 23.1.0 and twilio 6.2.0 have made, and one that @slack/bolt 5.1.0 accepts", () => {
      const stripe = "t=1764115200,v1=8ec35724f83fc1494969fc976f41d9d95bec9ac97b1e589ad8e8b42190925a5b";
      const body = '{"id":"evt_1","text":"grüße\\r\\n"}\r\n';
      expect(
        acceptsSignature(sampleOf("stripe"), { headers: { "stripe-signature": stripe }, url: URL, body }),
      ).to.equal(true);
      const form = new URLSearchParams([
        ["From", "+4930123"],
        ["Body", "grüße & mehr"],
      ]);
      for (const value of ["b", "a", "a"]) form.append("Zed", value);
      const type = { "content-type": "application/x-www-form-urlencoded; charset=UTF-8" };
      const sms = { url: "https://example.com/h/1/sms?foo=1&bar=2", body: form.toString() };
      for (const signature of ["fYqJlNdfBan3nwYrOlugWzwmVZE=", "z6t81x9zICeg1q+fPWsKwKJz2gU="]) {
        expect(
          acceptsSignature(sampleOf("twilio, form"), { headers: { ...type, "x-twilio-signature": signature }, ...sms }),
        ).to.equal(true);
      }
      const digest = "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862";
      const json = { url: `https://example.com/h/1/sms?bodySHA256=${digest}`, body: '{"a":1}' };
      const headers = { "content-type": "application/json", "x-twilio-signature": "tUc4WE8MYjkXcbgtagexSyAu9SQ=" };
      expect(acceptsSignature(sampleOf("twilio, JSON"), { headers, ...json })).to.equal(true);
      expect(acceptsSignature(sampleOf("twilio, JSON"), { headers, ...json, body: '{"a":2}' })).to.equal(false);
      const slack = {
        "x-slack-signature": "v0=28ca0c2f0047edf84869a8600db835e3e786a787e0cfe151c3b284178252c3fe",
        "x-slack-request-timestamp": "1531420618",
      };
      const command = { headers: slack, url: URL, body: "token=x&text=94070" };
      expect(acceptsSignature(sampleOf("slack"), command, 1_531_420_618)).to.equal(true);
    });
  });

  it("can have keys that are strings only, at most two", () => {
    const cases: [unknown, string[]][] = [
      ["a", ["a"]],
      [
        ["new", "old"],
        ["new", "old"],
      ],
      [
        ["new", "old", "older"],
        ["new", "old"],
      ],
      [["", "old"], ["old"]],
      ["", []],
      [" ", []],
      [undefined, []],
      [null, []],
      [{}, []],
      [5, []],
      [[], []],
    ];
    for (const [setting, keys] of cases) expect(parseSigningKeys(setting), JSON.stringify(setting)).to.deep.equal(keys);
  });

  it("return the ID of the event if the sender has one", () => {
    const headers: Record<string, string> = {
      "webhook-id": "standard",
      "x-github-delivery": "github",
      "x-shopify-event-id": "shopify",
      "i-twilio-idempotency-token": "twilio",
      "x-own": "own",
    };
    const request = requestOf({ headers, url: URL, body: "" });
    const body = { id: "stripe", event_id: "slack" };
    const idOf = (scheme: string) =>
      readWebhookEventId(request, { auth: { type: "signature", scheme: scheme as "stripe", setting: "__x" } }, body);
    for (const scheme of ["stripe", "slack", "github", "shopify", "twilio"]) expect(idOf(scheme)).to.equal(scheme);
    expect(idOf("standard-webhooks")).to.equal("standard");
    expect([idOf("sendgrid"), idOf("hmac")]).to.deep.equal([null, null]);
    expect(readWebhookEventId(request, { auth: { type: "none" }, idempotencyHeader: "X-Own" }, body)).to.equal("own");
    for (const odd of [null, [], "evt", { id: 5 }, { id: "" }, { id: {} }]) {
      const auth = { type: "signature", scheme: "stripe", setting: "__x" } as const;
      expect(readWebhookEventId(request, { auth }, odd)).to.equal(null);
    }
  });
});
