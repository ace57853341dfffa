/** What is evaluated of a run while its row is written: only what reaches nothing, and nothing of it is there without its row. */
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import type { PageOutcome, PageRun, PageScript, Trial } from "../../src/engine/browser/run.js";
import type { AcceptedTarget, AskedRun } from "../../src/operations/runs/acceptance.js";
import type { Speculation } from "../../src/operations/runs/run-facts.js";
import type { RunSecrecy } from "../../src/operations/runs/secrecy.js";
import { createSpeculations, evaluatedOf } from "../../src/operations/runs/speculation.js";
import type { Target } from "../../src/operations/runs/targets.js";
import { startTestService, type TestService } from "../harness/service.js";

const TIMEOUT_MS = 1_000;
const ASKED: AskedRun = {
  ...{ appId: 1, copy: "master", nameOrId: "sum", payload: '{"a":1}' },
  ...{ personId: 2, credentialId: 3, idempotencyKey: null },
};
const TARGET: Target = {
  ...{ id: 4, name: "sum", code: "async function execute() {}", environment: "server", active: true },
  ...{ actionVersion: "v3", triggers: [{ trigger: "manual" }], dependencies: [], assets: [], waitsFor: null },
};
const accepted = (changes: Partial<AcceptedTarget> = {}): AcceptedTarget => ({
  ...{ id: 5, repeated: false, target: TARGET, secretsVersion: 6, ...changes },
});

const ENDLESS = new Promise<PageOutcome | null>(() => {});

/** `shared`: as `RunScripts` answers; `outcome`: of each trial. */
function createPlayed(shared: () => PageScript[] | null = () => [], outcome = () => ENDLESS) {
  const begun: { request: PageRun; ended: boolean }[] = [];
  const speculations = createSpeculations({
    tryOut(request): Trial {
      const one = { request, ended: false };
      begun.push(one);
      const end = () => {
        one.ended = true;
      };
      return { outcome: outcome(), lines: [], end };
    },
    secrecy: {
      begin: async (_appId: number, version = 0) =>
        ({ contextSettings: () => `{"_version":${version}}` }) as Partial<RunSecrecy> as RunSecrecy,
    },
    scripts: { shared: async () => shared() },
    timeoutMs: TIMEOUT_MS,
  });
  return { begun, speculations };
}

/** As the run has it, of what was accepted. */
const wantedOf = ({ target, secretsVersion }: AcceptedTarget, asked = ASKED, packages: PageScript[] = []) =>
  evaluatedOf(asked, target, packages, `{"_version":${secretsVersion}}`, TIMEOUT_MS);

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Whether each was ended, when there was time for it. */
async function ended({ begun }: Pick<ReturnType<typeof createPlayed>, "begun">): Promise<boolean[]> {
  await delay(100);
  return begun.map((one) => one.ended);
}

/** The database's answer, which takes its time. */
async function answer(accepted: AcceptedTarget | Error): Promise<AcceptedTarget> {
  await turn();
  if (accepted instanceof Error) throw accepted;
  return accepted;
}

/** The speculation of a request that follows one which was accepted so. */
async function second(
  { speculations }: ReturnType<typeof createPlayed>,
  { first = accepted(), asked = ASKED, then = accepted(), startsAtOnce = true } = {},
): Promise<Speculation | null> {
  expect((await speculations.beside(ASKED, answer(first), true)).speculation).to.equal(null);
  return (await speculations.beside(asked, answer(then), startsAtOnce)).speculation;
}

describe("what is begun of a run before its row stands", () => {
  it("is the run's where the row says the same, once", async () => {
    const played = createPlayed();
    const speculation = (await second(played))!;
    expect(await speculation.trialOf(wantedOf(accepted()))).to.have.property("lines");
    expect(await speculation.trialOf(wantedOf(accepted()))).to.equal(null);
    speculation.drop();
    expect(await ended(played)).to.deep.equal([false]);
    expect(played.begun[0]!.request).to.deep.equal(wantedOf(accepted()));
  });

  it("begins before the row is written", async () => {
    const { begun, speculations } = createPlayed();
    await speculations.beside(ASKED, answer(accepted()), true);
    const writing = Promise.withResolvers<AcceptedTarget>();
    const beside = speculations.beside(ASKED, writing.promise, true);
    await turn();
    expect(begun.length).to.equal(1);
    writing.resolve(accepted());
    await beside;
  });

  const others: Record<string, ReturnType<typeof wantedOf>> = {
    "other code": wantedOf(accepted({ target: { ...TARGET, code: "async function execute() { return 2; }" } })),
    "another name": wantedOf(accepted({ target: { ...TARGET, name: "total" } })),
    "another limit": wantedOf(accepted({ target: { ...TARGET, timeoutMs: 500 } })),
    "other settings": wantedOf(accepted({ secretsVersion: 7 })),
    "another payload": wantedOf(accepted(), { ...ASKED, payload: '{"a":2}' }),
    "another copy": wantedOf(accepted(), { ...ASKED, copy: "production" }),
    "a package more": wantedOf(accepted(), ASKED, [{ name: "svc-csv", source: "" }]),
  };
  for (const [what, wanted] of Object.entries(others)) {
    it(`is ended, and nobody's, where the run has ${what}`, async () => {
      const played = createPlayed();
      const speculation = (await second(played))!;
      expect(await speculation.trialOf(wanted)).to.equal(null);
      expect(await ended(played)).to.deep.equal([true]);
    });
  }

  it("comes to its end by itself where that is near, so that its page serves on", async () => {
    const played = createPlayed(undefined, () => delay(5, null));
    const speculation = (await second(played))!;
    expect(await speculation.trialOf(wantedOf(accepted({ secretsVersion: 7 })))).to.equal(null);
    expect(await ended(played)).to.deep.equal([false]);
  });

  it("is ended where there is no row, and nothing is begun by the same name until there is one", async () => {
    const { begun, speculations } = createPlayed();
    await speculations.beside(ASKED, answer(accepted()), true);
    for (const _ of [1, 2]) {
      const refused = speculations.beside(ASKED, answer(new Error("inactive")), true);
      expect(await refused.catch((error: Error) => error.message)).to.equal("inactive");
    }
    expect(await ended({ begun })).to.deep.equal([true]);
  });

  it("is ended where the row is not that of a run that starts", async () => {
    for (const then of [accepted({ id: null }), accepted({ repeated: true })]) {
      const played = createPlayed();
      expect(await second(played, { then })).to.equal(null);
      expect(await ended(played)).to.deep.equal([true]);
    }
  });

  it("is nothing where a run may have to wait, may be repeated, or has scripts of its own", async () => {
    const waiting = accepted({ target: { ...TARGET, waitsFor: "concurrency" } });
    const keyed = { ...ASKED, idempotencyKey: "once" };
    const failing = createPlayed(() => {
      throw new Error("no such package");
    });
    const cases = [
      [createPlayed(), { first: waiting }],
      [createPlayed(), { asked: keyed }],
      [createPlayed(), { asked: { ...ASKED, nameOrId: "other" } }],
      [createPlayed(), { startsAtOnce: false }],
      [createPlayed(() => null), {}],
      [failing, {}],
    ] as const;
    for (const [at, [played, how]] of cases.entries()) {
      const speculation = await second(played, how);
      expect((await speculation?.trialOf(wantedOf(accepted()))) ?? null, String(at)).to.equal(null);
      expect(played.begun.length, String(at)).to.equal(0);
    }
  });
});

describe("a run whose row is long in coming", function () {
  this.timeout(60_000);
  let service: TestService;
  const path = "/v3/apps/1/actions/clock";
  const call = () => service.rest("POST", `${path}/runWithResult`, { body: { a: 1 } });
  const code = (more: string) =>
    `async function execute({ settings }) { console.log("evaluated"); return { at: Date.now(), settings, ${more} }; }`;
  const count = async (table: string) =>
    Number((await service.db.query(`SELECT count(*) AS count FROM ${table}`))[0].count);

  /** What the database does before it writes a run's row. */
  const writing = (does: string) =>
    service.db.query(`
      CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN ${does} RETURN NEW; END $$;
      CREATE OR REPLACE TRIGGER slow BEFORE INSERT ON run FOR EACH ROW EXECUTE FUNCTION slow()`);

  before(async () => {
    service = await startTestService();
    const fields = { name: "clock", code: code("v: 1"), active: true, triggers: [{ trigger: "manual" }] };
    expect((await service.rest("POST", "/v3/apps/1/actions", { body: fields })).http).to.equal(201);
    await service.db.query("CREATE TABLE written (at double precision)");
    expect((await call()).http).to.equal(200);
  });
  after(() => service.stop());
  afterEach(() => service.db.query("DROP TRIGGER IF EXISTS slow ON run"));

  it("was evaluated meanwhile, and is one run with one entry and one line", async () => {
    const before = await Promise.all(["run", "execution_log", "console_line"].map(count));
    await writing("PERFORM pg_sleep(2); INSERT INTO written VALUES (extract(epoch FROM clock_timestamp()) * 1000);");
    const { http, body } = await call();
    expect(http).to.equal(200);
    const [{ at }] = await service.db.query("SELECT at FROM written");
    expect(body.result.at).to.be.below(at);
    const after = await Promise.all(["run", "execution_log", "console_line"].map(count));
    expect(after).to.deep.equal(before.map((one) => one + 1));
  });

  it("leaves nothing where the row does not come", async () => {
    const before = await Promise.all(["run", "execution_log", "console_line"].map(count));
    await writing("PERFORM pg_sleep(1); RAISE EXCEPTION 'no row';");
    expect((await call()).http).to.equal(500);
    expect(await Promise.all(["run", "execution_log", "console_line"].map(count))).to.deep.equal(before);
  });

  it("has the code and the settings of its row, not those of the last run", async () => {
    for (const version of [2, 3]) {
      await service.rest("POST", "/v1/apps/1/settings", { body: { _limit: version } });
      const [{ id }] = await service.db.query("SELECT id FROM action WHERE name = 'clock' AND master_id IS NULL");
      await service.rest("PUT", `/v3/apps/1/actions/${id}`, { body: { code: code(`v: ${version}`) } });
      const { result } = (await call()).body;
      expect([result.v, result.settings]).to.deep.equal([version, { _limit: version }]);
    }
  });
});
