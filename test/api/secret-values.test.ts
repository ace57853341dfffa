/** Tests secret bindings: responses that contain the secret, and sealed keys. */
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { sampleOf } from "../harness/samples.js";
import type { TestService } from "../harness/service.js";
import { BoundRequests, OTHER, REQUEST_CODE, SECRET } from "./bound-requests.js";
import { compressedBodies } from "./compressed-bodies.js";
import { ECHOES } from "./echo-forms.js";

describe("values of secret bindings", () => {
  let bound: BoundRequests;
  let service: TestService;
  let origin: string;

  before(async () => {
    bound = await BoundRequests.start();
    ({ service, origin } = bound);
  });
  after(() => bound.stop());
  beforeEach(() => bound.reset());

  describe("and responses that contain the value", () => {
    before(async () => {
      await bound.set({ __key: SECRET });
      await bound.bind([{ key: "__key", origin, in: "header", sealed: true }]);
    });

    it("never give the value to code, in any form, as text, JSON or bytes", async () => {
      let echo = ECHOES[0]![1];
      bound.answer = (_request, response) => {
        const { body, headers = {} } = echo(SECRET);
        response.writeHead(200, headers).end(body);
      };
      for (const [index, [title, next]] of ECHOES.entries()) {
        echo = next;
        for (const responseType of sampleOf(["text", "bytes"], index, 2)) {
          const { result, error } = await bound.run(REQUEST_CODE, { options: { auth: "__key", responseType } });
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
      const { runId } = await bound.run(REQUEST_CODE, { options: { auth: "__key" } });
      const { lines } = (await service.rest("GET", `/v3/apps/${service.appId}/runs/${runId}/console`)).body;
      expect(JSON.stringify(lines)).to.include("held the value of the setting __key").and.not.include(SECRET);
    });

    it("are removed as a whole if the value has several forms, and only the value if it is plain text", async () => {
      const wide = Buffer.from(SECRET, "utf16le");
      const gzipped = gzipSync(SECRET);
      // The header of gzip data can contain a file name as plain text. Here, the file name is the secret.
      const named = Buffer.concat([
        Buffer.from([...gzipped.subarray(0, 3), 8, ...gzipped.subarray(4, 10)]),
        Buffer.from(`${SECRET}\0`),
        gzipped.subarray(10),
      ]);
      const text = (charset: string) => ({ "content-type": `text/plain; charset=${charset}` });
      const KEY = "«__key»";
      const cases: [body: Buffer, expected: string, headers?: Record<string, string>][] = [
        [Buffer.concat([Buffer.from(`${SECRET} `), wide]), KEY],
        [Buffer.concat([Buffer.from(`${SECRET}!!`), wide]), KEY, text("latin1")],
        [Buffer.concat([Buffer.from(`${SECRET} `), Buffer.from(wide).swap16()]), KEY],
        [Buffer.concat([wide, Buffer.from(SECRET)]), KEY, text("utf-16le")],
        [named, KEY],
        [named, KEY, text("latin1")],
        [Buffer.from(`ü ${SECRET}`), `ü ${KEY}`],
        [Buffer.from(`ü ${SECRET}`, "latin1"), `ü ${KEY}`, text("latin1")],
        [Buffer.from(`ü ${SECRET}`, "utf16le"), `ü ${KEY}`, text("utf-16le")],
      ];
      for (const [at, [body, expected, headers]] of cases.entries()) {
        bound.answer = (_request, response) => response.writeHead(200, headers).end(body);
        const { result, error } = await bound.run(REQUEST_CODE, { options: { auth: "__key" } });
        expect(result?.body, `${at}: ${error}`).to.equal(expected);
      }
    });

    it("never give the value to code in a compressed body that is truncated, damaged or too large", async () => {
      const bodies = sampleOf(compressedBodies(SECRET, "«__key»"), 0, 10);
      bound.answer = (request, response) => response.end(bodies[Number(request.url!.slice(1))]![1]);
      const { result, error } = await bound.run(
        `const seen = [];
         for (let at = 0; at < payload.count; at += 1) {
           const sent = request({ url: payload.origin + "/" + at, auth: "__key", responseType: "bytes" });
           seen.push(await sent.then(({ body }) => new TextDecoder().decode(body).slice(0, 20), ({ code }) => code));
         }
         return seen;`,
        { count: bodies.length },
      );
      const seen = bodies.map(([name], at) => `${name}: ${result?.[at]}`);
      expect(seen, error).to.deep.equal(bodies.map(([name, , expected]) => `${name}: ${expected}`));
    });

    it("do not change other responses", async () => {
      const harmlessAnswer = { body: "sk_live is how keys begin; dGVzdA== 00ff «not a key»", headers: { "x-a": "b" } };
      bound.answer = (_request, response) => response.writeHead(200, harmlessAnswer.headers).end(harmlessAnswer.body);
      const { result } = await bound.run(REQUEST_CODE, { options: { auth: "__key" } });
      expect(result.body).to.equal(harmlessAnswer.body);
    });
  });

  describe("that are sealed", () => {
    const destination = () => ({ key: "__sealed", origin, in: "header", name: "X-Key" });
    const isVisible = async () =>
      (await bound.run("return [settings.__sealed !== undefined, Svc.App.Settings.get('__sealed') !== undefined];"))
        .result;

    beforeEach(async () => {
      await service.db.query("DELETE FROM sealed_setting; DELETE FROM secret_bindings");
      await bound.set({ __sealed: SECRET });
      expect(await isVisible()).to.deep.equal([true, true]);
      await bound.bind([{ ...destination(), sealed: true }]);
    });

    it("are missing in context.settings, and are still sent", async () => {
      expect(await isVisible()).to.deep.equal([false, false]);
      await bound.run(REQUEST_CODE, { options: { auth: "__sealed" } });
      expect(bound.received[0]!.headers["x-key"]).to.equal(SECRET);
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
      it(`require a new value for ${title}`, async () => {
        const bindings = change.map((fields) => ({ ...destination(), ...fields }));
        const refused = await bound.put(bindings);
        expect([refused.http, refused.body.status]).to.deep.equal([403, "FORBIDDEN"]);
        // After its last binding is removed, the key is still sealed.
        await bound.bind([]);
        expect(await isVisible()).to.deep.equal([false, false]);
        expect((await bound.put(bindings)).http).to.equal(403);
        expect((await bound.put([{ ...destination(), sealed: true }])).http).to.equal(403);
        expect((await bound.put(bindings.map((binding) => ({ ...binding, value: OTHER })))).http).to.equal(200);
      });
    }

    it("can be sent back as they were read, and stay sealed if the setting is replaced or deleted", async () => {
      const { bindings } = (await service.rest("GET", bound.path)).body;
      await bound.bind(bindings);
      await bound.set({ __sealed: OTHER });
      expect(await isVisible()).to.deep.equal([false, false]);
      await service.rest("DELETE", `/v1/apps/${service.appId}/settings`, { body: { keys: ["__sealed"] } });
      await bound.set({ __sealed: SECRET });
      expect(await isVisible()).to.deep.equal([false, false]);
      await bound.bind([{ ...destination(), sealed: false, value: OTHER }]);
      expect(await isVisible()).to.deep.equal([true, true]);
    });
  });
});
