/** Checks that a failure after the end of a run does not change its outcome: the database makes each later step fail. */
import { runInThisContext } from "node:vm";
import { expect } from "chai";
import { longTest, runsAll } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { makeAction, publishApp, send } from "../http/support.js";

/** Rows of a large result. The long tests use twice as many. */
const ROW_COUNT = runsAll() ? 40_000 : 20_000;

const CREATE_REFUSE_FUNCTION = `
  CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$`;

/** Steps after the outcome of a run, each with the event of a database trigger that makes it fail. */
const LATER_STEPS = {
  "the end of its token": "BEFORE UPDATE ON credential",
  "the keeping of its console lines": "BEFORE INSERT ON console_line",
};

describe("the outcome of a run", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api,runner" });
  });
  after(() => service.stop());

  describe("a run that has its result", () => {
    before(async () => {
      await service.db.query(CREATE_REFUSE_FUNCTION);
      const code = (body: string) => `async function execute() { console.log(typeof Svc); ${body} }`;
      for (const [name, body] of Object.entries({ returns: "return 7;", throws: "throw new TypeError('mine');" })) {
        const fields = { name, code: code(body), active: true, triggers: [{ trigger: "manual" }] };
        expect((await service.rest("POST", "/v3/apps/1/actions", { body: fields })).http).to.equal(201);
      }
    });

    for (const [step, when] of Object.entries(LATER_STEPS)) {
      it(`keeps it when ${step} fails, and its token ends anyway`, async () => {
        const table = when.split(" ").at(-1);
        await service.db.query(`CREATE TRIGGER refusal ${when} FOR EACH ROW EXECUTE FUNCTION refuse()`);
        try {
          const returned = await service.rest("POST", "/v3/apps/1/actions/returns/runWithResult");
          expect([returned.http, returned.body.result]).to.deep.equal([200, 7]);
          const thrown = await service.rest("POST", "/v3/apps/1/actions/throws/runWithResult");
          expect([thrown.http, thrown.body.error]).to.deep.equal([500, "TypeError: mine"]);
        } finally {
          await service.db.query(`DROP TRIGGER refusal ON ${table}`);
        }
        const kept = await service.db.query("SELECT type FROM execution_log ORDER BY id DESC LIMIT 2");
        expect(kept.map(({ type }: { type: string }) => type)).to.deep.equal(["app.task.failed", "app.task.completed"]);
        const SELECT_ENDLESS_TOKENS = "SELECT id FROM credential WHERE kind = 'task' AND expires_at IS NULL";
        expect(await service.db.query(SELECT_ENDLESS_TOKENS)).to.deep.equal([]);
      });
    }
  });

  describe("a result of megabytes", () => {
    const SECRET = "a-secret-of-some-length";
    /** Value with escapes, halves of surrogate pairs, characters of every length in UTF-8, and numbers that JSON writes in its own way. */
    const ROWS = String.raw`Array.from({ length: ${ROW_COUNT} }, (_, n) => ({ n, 'k"y': "a\\\n\u2028é€😀\ud800", zero: -0, small: 1e-7 }))`;
    const nested = (levels: number) => `JSON.parse("[".repeat(${levels}) + "]".repeat(${levels}))`;
    const code = (expression: string) => `async function execute() { return ${expression}; }`;
    before(async () => {
      await publishApp(service);
      await service.rest("POST", `/v1/apps/${service.appId}/settings`, { body: { _x: SECRET } });
    });

    async function run(expression: string, where = { method: "POST", path: "long", auth: { type: "none" } } as const) {
      const { id } = await makeAction(service, where, {
        code: code(expression),
        triggers: [{ trigger: "manual" }, { trigger: "http", where }],
      });
      const response = await fetch(`${service.url}/v3/apps/${service.appId}/actions/${id}/runWithResult`, {
        method: "POST",
        headers: { "auth-token": service.tokens.api },
      });
      const text = await response.text();
      const received = await send(service.url, `/h/${service.appId}/long`, { method: "POST" });
      const [entry] = await service.db.query("SELECT data::text FROM execution_log ORDER BY id DESC LIMIT 1");
      await service.rest("DELETE", `/v3/apps/${service.appId}/actions/${id}`);
      return { text, received, entry: entry.data as string };
    }

    it("is stored and sent byte for byte as JSON.stringify writes it", async () => {
      const expected = JSON.stringify(runInThisContext(ROWS));
      expect(expected.length).to.be.greaterThan(50 * ROW_COUNT);
      const { text, received, entry } = await run(ROWS);
      expect(text.endsWith(`"result":${expected}}`), text.slice(0, 200)).to.equal(true);
      expect(received.http).to.equal(200);
      expect(received.text === expected, received.text.slice(0, 200)).to.equal(true);
      expect(Number(received.headers["content-length"])).to.equal(Buffer.byteLength(expected));
      expect(entry.endsWith(`"result":{"data":${expected},"success":true}}`), entry.slice(0, 200)).to.equal(true);
    });

    it("fails if it holds a secret, or nests too deep", async () => {
      const leak = await run(`[...${ROWS}, "${SECRET}"]`);
      expect(leak.text).to.include("SecretLeakError: the result holds the value of the setting _x");
      expect(leak.entry).to.not.include(SECRET);
      const deep = await run(`[...${ROWS}, ${nested(10_001)}]`);
      expect(deep.text).to.include("RangeError: the result of execute nests deeper than");
    });

    longTest("can be the response that the action sets", async () => {
      const { received, entry } = await run(`Svc.App.V3.Actions.response({ status: 201, body: ${ROWS} })`);
      const expected = JSON.stringify(runInThisContext(ROWS));
      expect(received.http).to.equal(201);
      expect(received.text === expected, received.text.slice(0, 200)).to.equal(true);
      expect(entry).to.include('"httpResponse":true').and.to.not.include(SECRET);
    });
  });
});
