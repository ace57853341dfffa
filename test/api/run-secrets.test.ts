import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { longTest } from "../harness/samples.js";
import { type Answer, startTestService, type TestService } from "../harness/service.js";

const SECRET = "canary/of a private+setting";
const PROTECTED = "canary-of-a-protected-setting";

describe("the service, for runs with settings,", () => {
  let service: TestService;
  let server: Server;
  let url: string;
  const requestedPaths: string[] = [];
  let made = 0;
  before(async () => {
    server = createServer((request, response) => {
      requestedPaths.push(request.url!);
      response.setHeader("Access-Control-Allow-Origin", "*").end("here");
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    service = await startTestService({ ROLES: "api,runner", ALLOW_PRIVATE_NETWORK: "1" });
    await service.rest("POST", "/v1/apps/1/settings", {
      body: { open: "public value", _secret: SECRET, __deep: { key: PROTECTED }, __pin: "1234" },
    });
  });
  after(async () => {
    await service.stop();
    server.close();
  });

  async function run(
    body: string,
    { environment = "server", payload = {}, verb = "runWithResult" } = {},
  ): Promise<Answer> {
    made += 1;
    const name = `action-${made}`;
    const code = `async function execute(context) { ${body} }`;
    const fields = { name, code, environment, active: true, triggers: [{ trigger: "manual" }] };
    await service.rest("POST", "/v3/apps/1/actions", { body: fields });
    return service.rest("POST", `/v3/apps/1/actions/${name}/${verb}`, { body: payload });
  }

  it("gives a server action exactly the private and the protected settings", async () => {
    const { body } = await run("return Object.keys(context.settings).sort()");
    expect(body.result).to.deep.equal(["__deep", "__pin", "_secret"]);
  });

  it("gives an action with environment any no settings, also on the server", async () => {
    const { body } = await run("return context.settings", { environment: "any" });
    expect(body.result).to.deep.equal({});
  });

  for (const [title, code, key] of [
    ["a result", "return { found: context.settings._secret }", "_secret"],
    ["a protected value deep in a result", "return [[context.settings.__deep]]", "__deep"],
    ["a result in base64", "return btoa('x' + context.settings._secret)", "_secret"],
    ["a short value that is the whole of a string", "return { pin: context.settings.__pin }", "__pin"],
    ["an error's message", "throw new Error('no ' + context.settings._secret)", "_secret"],
    ["an error's name", "throw Object.assign(new Error(''), { name: context.settings.__deep.key })", "__deep"],
  ] as const) {
    it(`fails a run with ${title} that contains a secret, naming the key and never the value`, async () => {
      const { http, body } = await run(code);
      expect(http).to.equal(500);
      expect(body.status).to.equal("EXECUTION_FAILED");
      expect(body.error).to.include(key);
      const logs = await service.rest("POST", "/v3/apps/1/actions/logs", { body: { limit: 1 } });
      expect(logs.body.logs[0].type).to.equal("app.task.failed");
      for (const text of [JSON.stringify(body), JSON.stringify(logs.body)]) {
        expect(text)
          .not.to.include(SECRET)
          .and.not.to.include(PROTECTED)
          .and.not.to.include(btoa(`x${SECRET}`).slice(4, -4));
      }
    });
  }

  it("masks a secret in the payload of the log entry, not in that of the run", async () => {
    const payload = { deep: [{ told: `it is ${SECRET}` }], [PROTECTED]: 1, pin: "1234" };
    const { body } = await run("return context.payload.deep[0].told.length", { payload });
    expect(body.result).to.equal(`it is ${SECRET}`.length);
    const { logs } = (await service.rest("POST", "/v3/apps/1/actions/logs", { body: { limit: 1 } })).body;
    expect(logs[0].data.payload).to.deep.equal({ deep: [{ told: "it is «_secret»" }], "«__deep»": 1, pin: "«__pin»" });
  });

  it("masks secrets in the log entry of a run that was cancelled while it was queued", async () => {
    const debounce = { delayMs: 60_000, manual: true };
    const fields = { name: "held", code: "async function execute() {}", active: true, debounce };
    const triggers = [{ trigger: "manual" }];
    expect((await service.rest("POST", "/v3/apps/1/actions", { body: { ...fields, triggers } })).http).to.equal(201);
    const payloads = [];
    for (const isAlone of [true, false]) {
      const payload = { told: `it is ${SECRET}`, other: 1 };
      const { runId } = (await service.rest("POST", "/v3/apps/1/actions/held/run", { body: payload })).body;
      const path = isAlone ? `/v3/apps/1/runs/${runId}/cancel` : "/v3/apps/1/backlog/cancel";
      expect((await service.rest("POST", path, { body: isAlone ? undefined : {} })).http).to.equal(200);
      const { logs } = (await service.rest("POST", "/v3/apps/1/actions/logs", { body: { limit: 1 } })).body;
      expect(logs[0].data.error.name).to.equal("CancelledError");
      payloads.push(logs[0].data.payload);
    }
    expect(payloads).to.deep.equal([{ told: "it is «_secret»", other: 1 }, {}]);
  });

  it("masks a secret in what a run prints", async () => {
    const { body } = await run("console.log('the key is', context.settings._secret); console.warn('second')");
    const { lines } = (await service.rest("GET", `/v3/apps/1/runs/${body.runId}/console`)).body;
    expect(lines.map(({ level, text }: { level: string; text: string }) => [level, text])).to.deep.equal([
      ["log", "the key is «_secret»"],
      ["warn", "second"],
    ]);
  });

  it("masks a secret in what a run's worker prints", async () => {
    const worker = "onmessage = ({ data }) => { console.error('told', data); postMessage(1) }";
    const { body } = await run(`
      const worker = new Worker(URL.createObjectURL(new Blob([${JSON.stringify(worker)}])));
      worker.postMessage({ key: btoa(context.settings._secret) });
      await new Promise((resolve) => { worker.onmessage = resolve })`);
    const { lines } = (await service.rest("GET", `/v3/apps/1/runs/${body.runId}/console`)).body;
    expect(lines.map(({ level, text }: { level: string; text: string }) => [level, text])).to.deep.equal([
      ["error", 'told {"key":"«_secret»"}'],
    ]);
  });

  it("blocks a request whose URL contains a secret, names the key on the console, and lets the run continue", async () => {
    const { body } = await run(`
      const errors = [];
      for (const q of ["?k=" + context.settings._secret, "?k=" + btoa(context.settings.__deep.key), "?pin=1234", "?ok"]) {
        await fetch("${url}/x" + q).catch((error) => errors.push(error.message));
      }
      return errors`);
    expect(body.result).to.deep.equal(["Failed to fetch", "Failed to fetch", "Failed to fetch"]);
    expect(requestedPaths).to.deep.equal(["/x?ok"]);
    const { lines } = (await service.rest("GET", `/v3/apps/1/runs/${body.runId}/console`)).body;
    const texts: string[] = lines.map(({ text }: { text: string }) => text);
    for (const key of ["_secret", "__deep", "__pin"]) {
      expect(texts).to.include(`A request was blocked: its URL holds the value of the setting ${key}`);
    }
  });

  longTest("reports at most a hundred blocked requests of a run", async () => {
    const { body } = await run(`
      let blocked = 0;
      const ask = () => fetch("${url}/x?k=" + context.settings._secret).catch(() => { blocked += 1 });
      for (let at = 0; at < 15; at += 1) await Promise.all(Array.from({ length: 10 }, ask));
      return blocked`);
    expect(body.result).to.equal(150);
    const { lines } = (await service.rest("GET", `/v3/apps/1/runs/${body.runId}/console`)).body;
    const received = lines.filter(({ text }: { text: string }) => text.startsWith("A request was blocked"));
    expect(received).to.have.length(100);
  });

  it("shows the console live until the run has ended", async () => {
    const client = service.socket();
    const code = "for (const n of [1, 2, 3]) { console.log(n); await new Promise((r) => setTimeout(r, 300)); }";
    const { body } = await run(code, { verb: "run" });
    const texts: string[] = [];
    const lines = client.iterate<{ runConsoleAdded: { text: string } }>({
      query: `subscription { runConsoleAdded(appId: 1, runId: ${body.runId}) { text } }`,
    });
    for await (const { data } of lines) if (data) texts.push(data.runConsoleAdded.text);
    expect(texts).to.deep.equal(["1", "2", "3"]);
    await client.dispose();
  });

  longTest("shows all lines of a run, also more than a socket may buffer, beside other subscriptions", async () => {
    const { body } = await run("return 1");
    const texts = Array.from({ length: 5_000 }, (_, at) => `line ${at}`);
    await service.db.query(
      `INSERT INTO console_line (run_id, seq, level, at, text)
       SELECT $1, place - 1, 'log', now(), text FROM unnest($2::text[]) WITH ORDINALITY AS line (text, place)`,
      [body.runId, texts],
    );
    const client = service.socket();
    const query = `subscription { runConsoleAdded(appId: 1, runId: ${body.runId}) { text } }`;
    const read = async () => {
      const got: string[] = [];
      for await (const { data } of client.iterate<{ runConsoleAdded: { text: string } }>({ query }))
        got.push(data!.runConsoleAdded.text);
      return got;
    };
    for (const got of await Promise.all([read(), read(), read()])) expect(got).to.deep.equal(texts);
    const together = `subscription { runConsoleLinesAdded(appId: 1, runId: ${body.runId}) { text } }`;
    const batches: string[][] = [];
    for await (const { data } of client.iterate<{ runConsoleLinesAdded: { text: string }[] }>({ query: together }))
      batches.push(data!.runConsoleLinesAdded.map(({ text }) => text));
    expect(batches.flat()).to.deep.equal(texts);
    expect(batches.map(({ length }) => length)).to.deep.equal(Array(10).fill(500));
    await client.dispose();
  });

  it("shows a run's lines only to readers of the app's log, and not under another app's ID", async () => {
    const { body } = await run('console.log("of this app alone")');
    const { app } = (await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "Other" } })).body;
    for (const [as, appId, refusal] of [
      ["viewer", 1, "permission denied"],
      ["admin", app.id, "RUN_NOT_FOUND"],
    ] as const) {
      const client = service.socket(as);
      for (const name of ["runConsoleAdded", "runConsoleLinesAdded"]) {
        const query = `subscription { ${name}(appId: ${appId}, runId: ${body.runId}) { text } }`;
        const next = client.iterate({ query }).next();
        const got = await next.catch((error: unknown) => error);
        expect(JSON.stringify(got), `${name} for ${as}`).to.include(refusal).and.not.include("of this app alone");
      }
      await client.dispose();
    }
  });

  it("fails every server action of an app whose private and protected settings exceed 100 KB, and logs it", async () => {
    await service.rest("POST", "/v1/apps/1/settings", { body: { __big: "x".repeat(101 * 1024) } });
    const { http, body } = await run("return 1");
    expect(http).to.equal(500);
    expect(body.error).to.include("private app settings exceed the 100 KB limit for server actions");
    const logs = await service.rest("POST", "/v3/apps/1/actions/logs", { body: { limit: 1 } });
    expect(logs.body.logs[0].data.error.message).to.include("exceed the 100 KB limit");
    const other = await run("return 1", { environment: "any" });
    expect(other.body.result).to.equal(1);
    await service.rest("DELETE", "/v1/apps/1/settings", { body: { keys: ["__big"] } });
  });
});
