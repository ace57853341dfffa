/**
 * Checks that the mode of a run with an npm package depends only on the parts of the package that the run uses. npm-choices.test.ts
 * declares these tests and starts the service.
 */
import { expect } from "chai";
import type { TestRegistry } from "../harness/npm-registry.js";
import { longTest } from "../harness/samples.js";
import type { TestService } from "../harness/service.js";

export interface Started {
  registry: TestRegistry;
  service: TestService;
}

/** Declares the tests. @param started returns the service and its registry; called only after they have started */
export function testModes(started: () => Started): void {
  let service: TestService;

  before(() => {
    const { registry } = started();
    service = started().service;
    const publishPackage = (name: string, code: string) =>
      registry.publish({ name, version: "1.0.0", files: { "index.js": code } });
    publishPackage("half-page", "exports.sum = (a, b) => a + b; exports.load = () => new XMLHttpRequest().readyState;");
    publishPackage("lists-all", "exports.all = { eval, window }; exports.sum = (a, b) => a + b;");
    publishPackage("sees-around", "exports.sum = (a, b) => eval('a + b');");
    publishPackage(
      "asks-for-more",
      "exports.sum = (a, b) => a + b; exports.more = () => import('https://example.com/x.js');",
    );
  });

  async function runsByMode(): Promise<Record<string, number>> {
    const text = await (await fetch(`${service.url}/metrics`)).text();
    const found = [...text.matchAll(/^svc_runs_total\{[^}]*mode="([\w-]+)"[^}]*\} (\d+)$/gm)];
    const sums: Record<string, number> = {};
    // The metric has several lines for each mode, such as one for each outcome.
    for (const [, mode, runs] of found) sums[mode!] = (sums[mode!] ?? 0) + Number(runs);
    return sums;
  }

  let count = 0;
  const actions = () => `/v3/apps/${service.appId}/actions`;
  async function create(dependency: string, call: string): Promise<number> {
    count += 1;
    const action = {
      name: `least-${count}`,
      code: `async function execute() { return ${call}; }`,
      dependencies: [dependency],
      active: true,
      triggers: [{ trigger: "manual" }],
    };
    return (await service.rest("POST", actions(), { body: action })).body.action.id;
  }
  const run = async (id: number) =>
    (await service.rest("POST", `${actions()}/${id}/runWithResult`, { body: {} })).body.result;

  /** Calls the package in an action. Returns the result, and the modes in which the run was executed. */
  async function modesOf(dependency: string, call: string) {
    const id = await create(dependency, call);
    const before = await runsByMode();
    const result = await run(id);
    const after = await runsByMode();
    return [result, Object.keys(after).filter((mode) => after[mode] !== before[mode])];
  }

  it("runs in an isolate if the run does not use what the isolate lacks, otherwise in a document", async () => {
    expect(await modesOf("half-page", "halfPage.sum(1, 2)")).to.deep.equal([3, ["isolate"]]);
    expect(await modesOf("half-page", "halfPage.load()")).to.deep.equal([0, ["document"]]);
    expect(await modesOf("half-page", "halfPage.sum(3, 4)")).to.deep.equal([7, ["isolate"]]);
  });

  longTest("is evaluated only after its run has a row, and so is code without packages", async () => {
    const actionWithPackage = await create("half-page", "[Date.now(), halfPage.sum(1, 2)]");
    const plain = await create("half-page", "[Date.now(), 3]");
    await Promise.all([run(actionWithPackage), run(plain)]);
    await service.db.query(`
      CREATE TABLE written (at double precision);
      CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_sleep(2); INSERT INTO written VALUES (extract(epoch FROM clock_timestamp()) * 1000); RETURN NEW; END $$;
      CREATE TRIGGER slow BEFORE INSERT ON run FOR EACH ROW EXECUTE FUNCTION slow()`);
    try {
      for (const id of [actionWithPackage, plain]) {
        const [at, sum] = await run(id);
        expect(sum).to.equal(3);
        const [{ writtenAt }] = await service.db.query('SELECT max(at) AS "writtenAt" FROM written');
        expect(at).to.be.at.least(Math.floor(writtenAt));
      }
    } finally {
      await service.db.query("DROP TRIGGER slow ON run");
    }
  });

  longTest(
    "runs in an isolate if the package only stores eval, and in a document if it calls eval by name or imports a module",
    async () => {
      expect(await modesOf("lists-all", "listsAll.sum(1, 2)")).to.deep.equal([3, ["isolate"]]);
      expect(await modesOf("sees-around", "seesAround.sum(1, 2)")).to.deep.equal([3, ["document"]]);
      expect(await modesOf("asks-for-more", "asksForMore.sum(1, 2)")).to.deep.equal([3, ["document"]]);
    },
  );
}
