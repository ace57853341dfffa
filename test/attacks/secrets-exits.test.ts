/** Tests each output of a run that could contain a secret. secrets-forms.test.ts tests the secret scan itself. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { longTest, sampleOf } from "../harness/samples.js";
import { type Answer, startTestService, type TestService } from "../harness/service.js";
import { VALUES } from "./secret-values.js";

const SETTINGS = "/v1/apps/1/settings";

describe("secrets in the output of a run", () => {
  let service: TestService;
  let server: Server;
  let url: string;
  let receivedRequests: { url: string; referer?: string }[] = [];
  let made = 0;

  before(async () => {
    server = createServer(({ url: path, headers }, response) => {
      receivedRequests.push({ url: path!, ...(headers.referer && { referer: headers.referer }) });
      response.setHeader("Access-Control-Allow-Origin", "*").end("here");
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    service = await startTestService({ ROLES: "api,runner", ALLOW_PRIVATE_NETWORK: "1" });
  });
  after(async () => {
    await service.stop();
    server.close();
  });
  beforeEach(() => {
    receivedRequests = [];
  });
  afterEach(async () => {
    const { settingsStatus: found } = (await service.graphql("{ settingsStatus(appId: 1) { key } }")).data;
    await service.rest("DELETE", SETTINGS, { body: { keys: found.map(({ key }: { key: string }) => key) } });
  });

  const set = (body: object) => service.rest("POST", SETTINGS, { body });

  async function run(
    code: string,
    { payload = {}, as = "editor", dependencies = [] as string[] } = {},
  ): Promise<Answer> {
    made += 1;
    const name = `exit-${made}`;
    const fields = { name, code: `async function execute(context) { ${code} }`, active: true, dependencies };
    await service.rest("POST", "/v3/apps/1/actions", { body: { ...fields, triggers: [{ trigger: "manual" }] } });
    return service.rest("POST", `/v3/apps/1/actions/${name}/runWithResult`, { body: payload, as });
  }

  async function linesOf(runId: number): Promise<string[]> {
    const { lines } = (await service.rest("GET", `/v3/apps/1/runs/${runId}/console`)).body;
    return lines.map(({ text }: { text: string }) => text);
  }

  const lastEntry = async () =>
    (await service.rest("POST", "/v3/apps/1/actions/logs", { body: { limit: 1 } })).body.logs[0];

  function expectLeak({ http, body }: Answer, exit: string): void {
    expect({ http, status: body.status }, exit).to.deep.equal({ http: 500, status: "EXECUTION_FAILED" });
    expect(body.error, exit).to.include("_key");
  }

  for (const [kind, value] of sampleOf(Object.entries(VALUES), 0, 3)) {
    it(`keeps ${kind} out of results, errors, the console, payloads and URLs`, async () => {
      await set({ _key: value });
      const key = "context.settings._key";
      expectLeak(await run(`return { deep: [${key}] }`), "a result");
      expectLeak(await run(`return { ['a long key ' + ${key}]: 1 }`), "a result's key");
      const units = `${key}.split("").map((c) => "\\\\u" + c.charCodeAt(0).toString(16).padStart(4, "0")).join("")`;
      expectLeak(await run(`return JSON.rawJSON('"' + ${units} + '"')`), "an escaped result");
      for (const field of ["name", "message", "stack"]) {
        expectLeak(await run(`throw Object.assign(new Error('x'), { ${field}: 'at ' + ${key} })`), field);
      }
      const printed = await run(`console.log('it is', ${key}); console.log({ a: ${key} }); return document.title`);
      for (const line of await linesOf(printed.body.runId)) expect(line).to.include("«_key»");
      await run("return 1", { payload: { told: `it is ${value}` } });
      expect(JSON.stringify((await lastEntry()).data.payload))
        .to.include("«_key»")
        .and.not.include(value.slice(0, 12));
      const sent = await run(
        `return fetch('${url}/x?k=' + encodeURIComponent(${key}.slice(0, 1e5))).catch(() => 'blocked')`,
      );
      if (value.length < 1e5) expect(sent.body.result, "an address").to.equal("blocked");
      expect(receivedRequests).to.deep.equal([]);
    });
  }

  it("searches texts before they are shortened: errors and lines that end within a secret", async () => {
    await set({ _key: "a-secret-of-forty-characters-0123456789!" });
    const cutCode = "'x'.repeat(16384 - 20) + context.settings._key";
    for (const field of ["name", "message", "stack"]) {
      expectLeak(await run(`throw Object.assign(new Error('x'), { ${field}: ${cutCode} })`), field);
    }
    const { body } = await run(`console.log(${cutCode}); return 1`);
    const [line] = await linesOf(body.runId);
    expect(line!.slice(-10)).to.equal("xxx«_key»".slice(-10).padStart(10, "x"));
  });

  it("lets no request leave whose referrer contains a secret", async () => {
    await set({ _key: "a-secret-of-forty-characters-0123456789!" });
    const { body } = await run(`
      history.replaceState(null, '', '/' + context.settings._key);
      const policies = ['unsafe-url', 'no-referrer', 'no-referrer-when-downgrade', 'strict-origin-when-cross-origin'];
      const told = [];
      for (const referrerPolicy of policies) {
        told.push(await fetch('${url}/r', { referrerPolicy }).then((a) => a.status, () => 'blocked'));
      }
      return told;`);
    expect(body.result[0]).to.equal("blocked");
    expect(body.result[1]).to.equal(200);
    for (const { referer = "" } of receivedRequests) expect(referer).to.not.include("secret");
  });

  describe("a value that changes while a run executes", () => {
    const READ = `
      const read = async () => (await (await fetch(API, { headers: { 'Auth-token': TOKEN } })).json())._key;
      const write = (value) => fetch(API, { method: 'POST', body: JSON.stringify({ _key: value }),
        headers: { 'Auth-token': TOKEN, 'Content-Type': 'application/json' } });
      `;
    const code = (body: string) =>
      READ.replaceAll("API", `'${service.url}${SETTINGS}'`).replaceAll("TOKEN", `'${service.tokens.api}'`) + body;

    it("does not leave in the result, the console or a URL", async () => {
      await set({ _key: "the value at the start" });
      expectLeak(await run(code("await write('another, set meanwhile'); return await read()")), "a result");
      await set({ _key: "the value at the start" });
      const printed = await run(code("await write('another, set meanwhile'); console.log(await read()); return 1"));
      expect(await linesOf(printed.body.runId)).to.deep.equal(["«_key»"]);
      await set({ _key: "the value at the start" });
      const sent = await run(
        code(`await write('another, set meanwhile');
          return fetch('${url}/?k=' + encodeURIComponent(await read())).catch(() => 'blocked')`),
      );
      expect(sent.body.result).to.equal("blocked");
      expect(receivedRequests).to.deep.equal([]);
    });

    it("does not leave either if it was set and removed again in the meantime, nor does the first value", async () => {
      await set({ _key: "the value at the start" });
      const passing = "await write('a passing value'); const v = await read(); await write('the last value'); return v";
      expectLeak(await run(code(passing)), "a passing value");
      await set({ _key: "the value at the start" });
      expectLeak(await run(code("const v = await read(); await write('a passing value'); return v")), "the first");
    });

    it("counts also in an app that had no secret when the run started", async () => {
      expectLeak(await run(code("await write('set meanwhile'); return await read()")), "a result");
    });

    it("fails a run if the service no longer has a value that was replaced during the run", async () => {
      await set({ _key: "the value at the start" });
      // The statement marks all earlier values of settings as deleted, including the value that this run will replace.
      await service.db.query("UPDATE app SET secrets_forgotten = secrets_version + 1 WHERE id = 1");
      const { http, body } = await run(code("await write('set meanwhile'); return 1"));
      expect([http, body.status]).to.deep.equal([500, "EXECUTION_FAILED"]);
      expect(body.error).to.include("changed too often");
    });

    longTest("fails a run during which more values were replaced than the service remembers", async () => {
      await set({ _key: "the value at the start" });
      const { http, body } = await run(
        code("for (let i = 0; i < 5; i += 1) await write(i + 'x'.repeat(90_000)); return 1"),
      );
      expect([http, body.status]).to.deep.equal([500, "EXECUTION_FAILED"]);
      expect(body.error).to.include("changed too often");
    });
  });

  describe("legitimate results", () => {
    it("may contain short private settings, which do not count as secrets", async () => {
      await set({ _env: "live", _region: "eu", _port: 443, __deep: { mode: "test" } });
      const honest = { eu: 1, region: "eu", mode: "live", list: ["test", 443] };
      const { body } = await run("return context.payload", { payload: honest });
      expect(body.result).to.deep.equal(honest);
      expect((await lastEntry()).data.payload).to.deep.equal(honest);
    });

    it("may contain a short protected value as the name of a key, but not as a whole string", async () => {
      await set({ __key: "eu" });
      expect((await run("return { eu: 1, text: 'in the eu' }")).body.result).to.deep.equal({
        eu: 1,
        text: "in the eu",
      });
      expectLeak(await run("return ['eu']"), "a whole string");
    });

    it("may contain a private word in names of keys and in texts; a protected word and other values are found", async () => {
      await set({ _env: "production", __key: "maintenance" });
      const honest = { production: 1, text: "in production", maintenance: { mode: "off" } };
      expect(
        (await run("return { production: 1, text: 'in production', maintenance: { mode: 'off' } }")).body.result,
      ).to.deep.equal(honest);
      expectLeak(await run("return { text: 'in maintenance' }"), "a protected word in a text");
      expectLeak(await run("return { under_maintenance_since: 1 }"), "a protected word in a long key");
      await set({ _key: "production2" });
      expectLeak(await run("return 'production2'"), "a private value that is no word");
      expect((await run("return { production2: 1 }")).body.result).to.deep.equal({ production2: 1 });
    });

    it("may contain a private value that its author marked as not secret, also after changes", async () => {
      await set({ _env: "production-eu", _key: "a secret of the app" });
      expect((await run("return 'production-eu'")).body.error).to.include("_env");
      const marked = await service.rest("PUT", `${SETTINGS}/secrecy`, { body: { keys: ["_env"], secret: false } });
      expect(marked.http).to.equal(200);
      expect(marked.body.details["_env"].secret).to.equal(false);
      expect((await run("return context.settings._env")).body.result).to.equal("production-eu");
      expectLeak(await run("return context.settings"), "all settings");
      await set({ _env: "production-eu-2" });
      expect((await run("return context.settings._env")).body.result).to.equal("production-eu-2");
      await service.rest("DELETE", SETTINGS, { body: { keys: ["_env"] } });
      await set({ _env: "production-eu" });
      expect((await run("return 'production-eu'")).body.error).to.include("_env");
    });

    it("keep the mark of the app's version after a restore", async () => {
      await set({ _env: "production-eu" });
      await service.rest("PUT", `${SETTINGS}/secrecy`, { body: { keys: ["_env"], secret: false } });
      const { version } = (await service.rest("POST", "/v1/apps/1/versions")).body;
      await service.rest("DELETE", SETTINGS, { body: { keys: ["_env"] } });
      await service.rest("POST", `/v1/apps/1/versions/${version.id}/restore`);
      expect((await run("return 'production-eu'")).body.result).to.equal("production-eu");
    });

    it("cannot be allowed by a mark on a public, protected or unknown setting", async () => {
      await set({ open: "public value", _env: "production-eu", __key: "a protected value" });
      for (const [keys, secret, expectedError] of [
        [["__key"], false, "protected"],
        [["_env", "__key"], true, "protected"],
        [["open"], false, "public"],
        [["_none"], false, "_none"],
        [["_env"], "no", "secret must be true or false"],
        ["_env", false, "keys must be an array"],
      ] as const) {
        const { http, body } = await service.rest("PUT", `${SETTINGS}/secrecy`, { body: { keys, secret } });
        expect([http, body.status]).to.deep.equal([400, "SETTINGS_INVALID"]);
        expect(body.error).to.include(expectedError);
      }
      for (const as of ["api", "viewer", "live"] as const) {
        const { http } = await service.rest("PUT", `${SETTINGS}/secrecy`, {
          as,
          body: { keys: ["_env"], secret: false },
        });
        expect(http).to.equal(403);
      }
      expect((await run("return 'production-eu'")).body.error).to.include("_env");
    });

    it("can be allowed over GraphQL too, and the audit log has the mark without the value", async () => {
      await set({ _env: "production-eu" });
      const { data } = await service.graphql(
        'mutation { markSettings(appId: 1, keys: ["_env"], secret: false) { key secret } }',
      );
      expect(data.markSettings).to.deep.equal([{ key: "_env", secret: false }]);
      const { body } = await service.rest("GET", "/v1/apps/1/audit?limit=1");
      expect(JSON.stringify(body)).to.include("app.settings.mark").and.include("_env").and.not.include("production-eu");
    });
  });

  it("do not reveal how often an app's secrets changed", async () => {
    const { body } = await service.rest("PUT", "/v1/apps/1", { body: {} });
    expect(JSON.stringify(body))
      .to.include('"id":1')
      .and.not.match(/secret/i);
  });

  it("a save with more secrets than the maximum is rejected, with the key, the maximum and the number", async () => {
    await set({ _small: "an earlier setting" });
    const many = Array.from({ length: 20_001 }, (_, i) => `a-value-${i}`);
    for (const [value, received] of [
      [many, "20001"],
      [["x".repeat(400_000), "y".repeat(200_000)], "600000"],
    ] as const) {
      const { http, body } = await set({ _many: value });
      expect([http, body.status]).to.deep.equal([400, "SETTINGS_INVALID"]);
      expect(body.error).to.include("_many").and.include(received).and.include("20000");
    }
    expect((await service.rest("GET", SETTINGS)).body).to.have.all.keys("_small");
  });
});
