/** Checks that no step after the outcome of a run changes it: the database makes each later step fail. */
import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";

const REFUSE = `
  CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$`;

/** Steps after the outcome of a run, each with its database statement. */
const LATER = {
  "the end of its token": "BEFORE UPDATE ON credential",
  "the keeping of its console lines": "BEFORE INSERT ON console_line",
};

describe("a run that has its result", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService();
    await service.db.query(REFUSE);
    const code = (body: string) => `async function execute() { console.log(typeof Svc); ${body} }`;
    for (const [name, body] of Object.entries({ returns: "return 7;", throws: "throw new TypeError('mine');" })) {
      const fields = { name, code: code(body), active: true, triggers: [{ trigger: "manual" }] };
      expect((await service.rest("POST", "/v3/apps/1/actions", { body: fields })).http).to.equal(201);
    }
  });
  after(() => service.stop());

  for (const [step, when] of Object.entries(LATER)) {
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
      const immortal = "SELECT id FROM credential WHERE kind = 'task' AND expires_at IS NULL";
      expect(await service.db.query(immortal)).to.deep.equal([]);
    });
  }
});
