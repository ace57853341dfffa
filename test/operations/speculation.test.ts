/** What is evaluated of a run while its row is written: only what reaches nothing, and nothing of it is there without its row. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import type { BegunRun, PageRun, PageScript } from "../../src/engine/browser/run.js";
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

/** `shared`: as `RunScripts` answers; `needed`: whether the app has secrets, by the number of their last change. */
function createPlayed(shared: () => PageScript[] | null = () => [], needed = (_version: number) => false) {
  const begun: { request: PageRun; dropped: boolean }[] = [];
  const speculations = createSpeculations({
    beginAhead(request): BegunRun {
      const one = { request, dropped: false };
      begun.push(one);
      const drop = async () => {
        one.dropped = true;
      };
      return { realm: "language", take: async () => null, drop };
    },
    secrecy: {
      begin: async (_appId: number, version = 0) =>
        ({
          contextSettings: () => `{"_version":${version}}`,
          needed: needed(version),
        }) as Partial<RunSecrecy> as RunSecrecy,
    },
    scripts: { shared: async () => shared() },
    isFollowed: false,
    timeoutMs: TIMEOUT_MS,
  });
  return { begun, speculations };
}

/** As the run has it, of what was accepted. */
const wantedOf = ({ target, secretsVersion }: AcceptedTarget, asked = ASKED, packages: PageScript[] = []) =>
  evaluatedOf(asked, target, packages, `{"_version":${secretsVersion}}`, TIMEOUT_MS);

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Whether each was dropped, when there was time for it. */
async function dropped({ begun }: Pick<ReturnType<typeof createPlayed>, "begun">): Promise<boolean[]> {
  await turn();
  return begun.map((one) => one.dropped);
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
    expect(await speculation.begunOf(wantedOf(accepted()), false)).to.have.property("take");
    expect(await speculation.begunOf(wantedOf(accepted()), false)).to.equal(null);
    speculation.drop();
    expect(await dropped(played)).to.deep.equal([false]);
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
    it(`is dropped, and nobody's, where the run has ${what}`, async () => {
      const played = createPlayed();
      const speculation = (await second(played))!;
      expect(await speculation.begunOf(wanted, false)).to.equal(null);
      expect(await dropped(played)).to.deep.equal([true]);
    });
  }

  it("has a judge to wait for in an app with secrets alone, and is dropped where its run has one and it has not", async () => {
    for (const needed of [true, false]) {
      const played = createPlayed(undefined, () => needed);
      const speculation = (await second(played))!;
      expect(await speculation.begunOf(wantedOf(accepted()), !needed)).to.equal(null);
      expect(await dropped(played)).to.deep.equal([true]);
      expect(played.begun[0]!.request.mayRequest?.("https://elsewhere.example/")).to.equal(needed ? false : undefined);
      const other = (await second(createPlayed(undefined, () => needed)))!;
      expect(await other.begunOf(wantedOf(accepted()), needed)).to.have.property("take");
    }
  });

  it("is dropped where there is no row, and nothing is begun by the same name until there is one", async () => {
    const { begun, speculations } = createPlayed();
    await speculations.beside(ASKED, answer(accepted()), true);
    for (const _ of [1, 2]) {
      const refused = speculations.beside(ASKED, answer(new Error("inactive")), true);
      expect(await refused.catch((error: Error) => error.message)).to.equal("inactive");
    }
    expect(await dropped({ begun })).to.deep.equal([true]);
  });

  it("is dropped where the row is not that of a run that starts", async () => {
    for (const then of [accepted({ id: null }), accepted({ repeated: true })]) {
      const played = createPlayed();
      expect(await second(played, { then })).to.equal(null);
      expect(await dropped(played)).to.deep.equal([true]);
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
      expect((await speculation?.begunOf(wantedOf(accepted()), false)) ?? null, String(at)).to.equal(null);
      expect(played.begun.length, String(at)).to.equal(0);
    }
  });
});

const ASKING = `async function execute({ payload }) {
  const begun = Date.now();
  const text = await (await fetch(payload.url)).text();
  return { begun, text, took: Date.now() - begun };
}`;
const urlOf = (host: Server) => `http://127.0.0.1:${(host.address() as AddressInfo).port}/`;

describe("a run whose row is long in coming", function () {
  this.timeout(180_000);
  let service: TestService;
  let host: Server;
  /** When each request came to the host. */
  const asked: number[] = [];
  const call = (name = "clock") =>
    service.rest("POST", `/v3/apps/1/actions/${name}/runWithResult`, { body: { url: urlOf(host) } });
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
    service = await startTestService({ ALLOW_PRIVATE_NETWORK: "1" });
    host = createServer((_request, response) => {
      asked.push(Date.now());
      response.writeHead(200, { "Access-Control-Allow-Origin": "*" }).end("ok");
    }).listen(0, "127.0.0.1");
    await once(host, "listening");
    for (const [name, body] of [
      ["clock", code("v: 1")],
      ["asking", ASKING],
    ]) {
      const fields = { name, code: body, active: true, triggers: [{ trigger: "manual" }] };
      expect((await service.rest("POST", "/v3/apps/1/actions", { body: fields })).http).to.equal(201);
      expect((await call(name)).http).to.equal(200);
    }
    await service.db.query("CREATE TABLE written (at double precision)");
  });
  after(async () => {
    await service.stop();
    host.close();
  });
  beforeEach(() => {
    asked.length = 0;
  });
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

  /** Saves it as code that nothing is known of, and runs it once. */
  async function saveAsking(mark: number): Promise<void> {
    const [{ id }] = await service.db.query("SELECT id FROM action WHERE name = 'asking' AND master_id IS NULL");
    await service.rest("PUT", `/v3/apps/1/actions/${id}`, { body: { code: `${ASKING} // ${mark}` } });
    expect((await call("asking")).http).to.equal(200);
    asked.length = 0;
  }

  it("was evaluated up to its first request, which waits for the row", async () => {
    let ahead = 0;
    // A machine that is busy may give up what it held.
    for (let turn = 0; turn < 5 && ahead === 0; turn += 1) {
      await service.db.query("DROP TRIGGER IF EXISTS slow ON run; TRUNCATE written");
      await saveAsking(turn);
      await writing(
        "PERFORM pg_sleep(0.02); INSERT INTO written VALUES (extract(epoch FROM clock_timestamp()) * 1000);",
      );
      const { body } = await call("asking");
      const [{ at }] = await service.db.query("SELECT at FROM written");
      expect(body.result.text).to.equal("ok");
      expect(asked.length).to.equal(1);
      expect(asked[0]).to.be.at.least(Math.floor(at));
      if (body.result.begun < at) ahead += 1;
    }
    expect(ahead).to.equal(1);
  });

  it("is run once, and in its own time, where its row comes later than its code would wait", async () => {
    await saveAsking(9);
    await writing("PERFORM pg_sleep(0.2);");
    const { body } = await call("asking");
    expect(body.result).to.include({ text: "ok" });
    expect(body.result.took).to.be.below(150);
    expect(asked.length).to.equal(1);
  });

  it("leaves nothing where the row does not come, and asks for nothing", async () => {
    const before = await Promise.all(["run", "execution_log", "console_line"].map(count));
    await writing("PERFORM pg_sleep(0.2); RAISE EXCEPTION 'no row';");
    for (const name of ["clock", "asking"]) expect((await call(name)).http).to.equal(500);
    await delay(300);
    expect(await Promise.all(["run", "execution_log", "console_line"].map(count))).to.deep.equal(before);
    expect(asked).to.deep.equal([]);
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
