/**
 * Tests HTTP triggers with the libraries that webhook senders publish: stripe, @octokit/webhooks, standardwebhooks, @slack/bolt and twilio.
 * `npm test` does not use them, because loading them takes 2 s. test/http/signatures.test.ts has values that they computed.
 */
import { createHmac, randomUUID } from "node:crypto";
import { Webhooks } from "@octokit/webhooks";
import { verifySlackRequest } from "@slack/bolt";
import { expect } from "chai";
import fc from "fast-check";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";
import twilio from "twilio";
import type { SignatureScheme } from "../../src/data/action-types.js";
import { startTestService, type TestService } from "../harness/service.js";
import { makeAction, publishApp, type Received, send } from "../http/support.js";

const MUTATIONS = 200;
const JSON_TYPE = { "content-type": "application/json" };
const FORM_TYPE = { "content-type": "application/x-www-form-urlencoded; charset=UTF-8" };
const GITHUB_KEY = "It's a Secret to Everybody";
const SLACK_KEY = "8f742231b10e8888abcd99yyyzzz85a5";
const STANDARD_KEY = `whsec_${Buffer.from("a secret of thirty-two bytes, or so").toString("base64")}`;
const STRIPE_KEY = "whsec_of_the_stripe_client";
const TWILIO_KEY = "12345abcde12345abcde12345abcde12";

interface WebhookEvent {
  id: string;
  text: string;
  /** Time in seconds since 1970. */
  time: number;
  url: string;
}

interface SignedRequest {
  url: string;
  headers: Record<string, string>;
  body: string;
}

interface WebhookClient {
  name: string;
  scheme: SignatureScheme;
  key: string;
  /** True if the scheme signs a time. */
  isTimed: boolean;
  /** Name of the header with the signature. */
  header: string;
  sign(event: WebhookEvent): Promise<SignedRequest> | SignedRequest;
  /** True if the client's library accepts the request. */
  verify(signed: SignedRequest): boolean | Promise<boolean>;
}

const isAccepted = (check: () => unknown): boolean => {
  try {
    return check() !== false;
  } catch {
    return false;
  }
};

const stripe = new Stripe("sk_test_0123456789");
const github = new Webhooks({ secret: GITHUB_KEY });
const standard = new Webhook(STANDARD_KEY);
const formOf = (body: string): Record<string, string> => Object.fromEntries(new URLSearchParams(body));

const WEBHOOK_CLIENTS: readonly WebhookClient[] = [
  {
    name: "stripe",
    scheme: "stripe",
    key: STRIPE_KEY,
    isTimed: true,
    header: "stripe-signature",
    sign({ id, text, time, url }) {
      const body = `{"id":${JSON.stringify(id)},"object":"event","data":{"object":${JSON.stringify(text)}}}\r\n`;
      const header = stripe.webhooks.generateTestHeaderString({ payload: body, secret: STRIPE_KEY, timestamp: time });
      return { url, body, headers: { ...JSON_TYPE, "stripe-signature": header } };
    },
    verify: ({ body, headers }) =>
      isAccepted(() => stripe.webhooks.constructEvent(body, headers["stripe-signature"]!, STRIPE_KEY)),
  },
  {
    name: "@octokit/webhooks",
    scheme: "github",
    key: GITHUB_KEY,
    isTimed: false,
    header: "x-hub-signature-256",
    async sign({ id, text, url }) {
      const body = JSON.stringify({ action: "opened", text });
      const signature = await github.sign(body);
      return {
        url,
        body,
        headers: {
          ...JSON_TYPE,
          "x-github-event": "issues",
          "x-github-delivery": id,
          "x-hub-signature-256": signature,
        },
      };
    },
    verify: ({ body, headers }) => github.verify(body, headers["x-hub-signature-256"]!).catch(() => false),
  },
  {
    name: "standardwebhooks",
    scheme: "standard-webhooks",
    key: STANDARD_KEY,
    isTimed: true,
    header: "webhook-signature",
    sign({ id, text, time, url }) {
      const body = JSON.stringify({ type: "contact.created", text });
      const headers = {
        "webhook-id": id,
        "webhook-timestamp": String(time),
        "webhook-signature": standard.sign(id, new Date(time * 1000), body),
      };
      return { url, body, headers: { ...JSON_TYPE, ...headers } };
    },
    verify: ({ body, headers }) => isAccepted(() => standard.verify(body, headers)),
  },
  {
    name: "@slack/bolt",
    scheme: "slack",
    key: SLACK_KEY,
    isTimed: true,
    header: "x-slack-signature",
    // The package can only verify signatures, so this code signs.
    sign({ id, text, time, url }) {
      const body = JSON.stringify({ type: "event_callback", event_id: id, event: { text } });
      const signature = createHmac("sha256", SLACK_KEY).update(`v0:${time}:${body}`).digest("hex");
      const headers = { "x-slack-signature": `v0=${signature}`, "x-slack-request-timestamp": String(time) };
      return { url, body, headers: { ...JSON_TYPE, ...headers } };
    },
    verify: ({ body, headers }) =>
      isAccepted(() =>
        verifySlackRequest({
          signingSecret: SLACK_KEY,
          body,
          headers: {
            "x-slack-signature": headers["x-slack-signature"]!,
            "x-slack-request-timestamp": Number(headers["x-slack-request-timestamp"]),
          },
        }),
      ),
  },
  {
    name: "twilio, form",
    scheme: "twilio",
    key: TWILIO_KEY,
    isTimed: false,
    header: "x-twilio-signature",
    sign({ id, text, url }) {
      const body = new URLSearchParams({ From: "+4930123", Body: text, MessageSid: id }).toString();
      const signature = twilio.getExpectedTwilioSignature(TWILIO_KEY, url, formOf(body));
      return {
        url,
        body,
        headers: { ...FORM_TYPE, "x-twilio-signature": signature, "i-twilio-idempotency-token": id },
      };
    },
    verify: ({ url, body, headers }) =>
      isAccepted(() => twilio.validateRequest(TWILIO_KEY, headers["x-twilio-signature"]!, url, formOf(body))),
  },
  {
    name: "twilio, JSON",
    scheme: "twilio",
    key: TWILIO_KEY,
    isTimed: false,
    header: "x-twilio-signature",
    sign({ id, text, url: address }) {
      const body = JSON.stringify({ text });
      const url = `${address}?bodySHA256=${twilio.getExpectedBodyHash(body)}`;
      const signature = twilio.getExpectedTwilioSignature(TWILIO_KEY, url, {});
      return {
        url,
        body,
        headers: { ...JSON_TYPE, "x-twilio-signature": signature, "i-twilio-idempotency-token": id },
      };
    },
    verify: ({ url, body, headers }) =>
      isAccepted(() => twilio.validateRequestWithBody(TWILIO_KEY, headers["x-twilio-signature"]!, url, body)),
  },
];

const TEXTS = ["grüße 日本 🎉", "lines\r\nand\r\nlines\r\n", "\u0000\u2028\ufeff\u0001", "ü".repeat(500_000)];
const CODE = "async function execute({ payload }) { return { raw: payload.request.rawBody, run: Math.random() }; }";

describe("webhooks of the senders' libraries", () => {
  let service: TestService;

  before(async () => {
    service = await startTestService({ RATE_LIMIT_HTTP: "0" });
    await publishApp(service);
    for (const [at, { scheme, key }] of WEBHOOK_CLIENTS.entries()) {
      const auth = { type: "signature", scheme, setting: `__client_${at}` } as const;
      await service.rest("POST", `/v1/apps/${service.appId}/settings`, { body: { [`__client_${at}`]: key } });
      await makeAction(service, { method: "POST", path: `clients/${at}`, auth }, { code: CODE });
    }
  });
  after(() => service.stop());

  const now = () => Math.floor(Date.now() / 1000);
  const runs = async (): Promise<number> => (await service.db.query("SELECT count(*)::int AS count FROM run"))[0].count;
  const deliver = ({ url, headers, body }: SignedRequest): Promise<Received> =>
    send(service.url, url.slice(service.url.length), { method: "POST", headers, body });

  for (const [at, client] of WEBHOOK_CLIENTS.entries()) {
    describe(client.name, () => {
      const event = (more: Partial<WebhookEvent> = {}): WebhookEvent => ({
        id: `evt_${randomUUID()}`,
        text: TEXTS[0]!,
        time: now(),
        url: `${service.url}/h/${service.appId}/clients/${at}`,
        ...more,
      });

      it("are accepted, and the action gets the unchanged body", async () => {
        for (const text of TEXTS) {
          // Form encoding makes this text up to nine times as long, so the test shortens the text.
          const signed = await client.sign(
            event({ text: client.name === "twilio, form" ? text.slice(0, 90_000) : text }),
          );
          expect(await client.verify(signed), "by the library").to.equal(true);
          const { http, json, text: answer } = await deliver(signed);
          expect(http, answer.slice(0, 200)).to.equal(200);
          expect(Buffer.from(json.raw, "base64").equals(Buffer.from(signed.body))).to.equal(true);
        }
      });

      it(`are rejected after each of ${MUTATIONS} mutations, and no run is written`, async () => {
        const signed = await client.sign(event());
        const before = await runs();
        const mutation = fc.record({
          place: fc.constantFrom("body", client.header),
          kind: fc.constantFrom("change", "remove", "add", "drop"),
          at: fc.nat(10_000),
          by: fc.constantFrom(..."abcdefABCDEF0189+/=,"),
        });
        const expectMutationRefused = async ({
          place,
          kind,
          at: chosen,
          by,
        }: {
          place: string;
          kind: string;
          at: number;
          by: string;
        }) => {
          const original = place === "body" ? signed.body : signed.headers[place]!;
          const point = chosen % original.length;
          const after = {
            change: original.slice(0, point) + by + original.slice(point + 1),
            remove: original.slice(0, point) + original.slice(point + 1),
            add: original.slice(0, point) + by + original.slice(point),
            drop: "",
          }[kind]!;
          fc.pre(after !== original);
          // Twilio signs the decoded fields of a form. So the signature stays valid if a mutation changes only the encoding of the fields.
          const hasSameFields = JSON.stringify(formOf(after)) === JSON.stringify(formOf(original));
          fc.pre(client.name !== "twilio, form" || place !== "body" || !hasSameFields);
          const mutated =
            place === "body"
              ? { ...signed, body: after }
              : { ...signed, headers: { ...signed.headers, [place]: after } };
          const { http, json } = await deliver(mutated);
          expect([http, json.status], `${place} ${kind} at ${point}`).to.deep.equal([401, "SIGNATURE_INVALID"]);
        };
        await fc.assert(fc.asyncProperty(mutation, expectMutationRefused), { numRuns: MUTATIONS, seed: 45 });
        expect(await runs()).to.equal(before);
      });

      it("run once when they are delivered again, also with another signature", async () => {
        const id = `evt_${randomUUID()}`;
        const first = await deliver(await client.sign(event({ id })));
        const before = await runs();
        const again = await deliver(await client.sign(event({ id, time: now() - 60 })));
        expect([again.http, again.text, again.headers["svc-replayed"]]).to.deep.equal([200, first.text, "true"]);
        expect(await runs()).to.equal(before);
      });

      if (client.isTimed) {
        it("are accepted if clocks differ by four minutes, and rejected if they differ by six or more", async () => {
          for (const skew of [-240, 240]) {
            expect((await deliver(await client.sign(event({ time: now() + skew })))).http, `${skew}`).to.equal(200);
          }
          for (const skew of [-360, 360, -86_400, 86_400]) {
            const { http } = await deliver(await client.sign(event({ time: now() + skew })));
            expect(http, `${skew}`).to.equal(401);
          }
        });
      }
    });
  }
});
