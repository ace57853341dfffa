/**
 * Checks that lists of versions do not read the large states of these versions, and that a comparison of versions does not block the event
 * loop.
 */
import { expect } from "chai";
import { ActionComparer } from "../../src/operations/actions/comparison.js";
import { AppVersions } from "../../src/operations/apps/app-versions.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";

type AppVersionsOptions = ConstructorParameters<typeof AppVersions>[0];
type ComparisonOptions = ConstructorParameters<typeof ActionComparer>[0];

describe("large histories", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());

  it("of an app are listed without the content of its snapshots", async () => {
    const hooks = `{"\\u0000":[${"{},".repeat(20_000)}{}]}`;
    const name = JSON.stringify('quotes " and \\ and a comma,');
    await service.db.query(
      `INSERT INTO app_version (app_id, action, data)
       SELECT 1, 'create', $1::json FROM generate_series(1, 100)`,
      [`{"name":${name},"startingPageId":null,"hooks":${hooks}}`],
    );
    let read = 0;
    const db = {
      async query(...statement: [string, unknown[]]) {
        const found = await service.db.query(...statement);
        read += JSON.stringify(found).length;
        return found;
      },
    };
    const versions = new AppVersions({ db } as unknown as AppVersionsOptions);
    const { versions: listed } = await versions.list(1, { limit: 100 });
    expect(listed).to.have.length(100);
    expect(listed.at(-1)!.name).to.equal('quotes " and \\ and a comma,');
    expect(read).to.be.below(50_000);
  });

  longTest("of an action are compared while other requests are served", async () => {
    const block = "\n".repeat(1_000);
    const code = (word: string) => Array.from({ length: 100 }, (_, at) => `${block}${word}${at}`).join("\n");
    const row = (id: number, masterId: number | null) => ({
      id,
      masterId,
      actionVersion: "v3",
      code: code(`//${id} `),
    });
    const [master, production] = [row(1, null), row(2, 1)];
    // The fake database responds immediately. So other work can only run when the comparison itself pauses.
    const findOne = async (_row: unknown, { where }: { where: object }) => ("masterId" in where ? production : master);
    const db = { manager: { findOne } };
    let turns = 0;
    let timer = setImmediate(function turn() {
      turns += 1;
      timer = setImmediate(turn);
    });
    const compared = await new ActionComparer({ db } as unknown as ComparisonOptions).compareLive(1, 1);
    clearImmediate(timer);
    expect(compared.code).to.contain("-//2 99").and.to.contain("+//1 99");
    expect(turns).to.be.above(0);
  });
});
