/** Tests actions that start when an entry is written, by a log trigger with a data source: they form no endless chain. */
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { insertPublishedActions } from "../harness/published-actions.js";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { issueTaskToken } from "../harness/task-token.js";

describe("log triggers of data sources", () => {
  let service: TestService;
  let base: string;

  before(async () => {
    service = await useSharedService("api");
    base = `/v1/apps/${service.appId}/data-sources`;
  });
  after(() => service.stop());

  const make = async (name: string): Promise<number> =>
    (await service.rest("POST", base, { body: { name } })).body.dataSource.id;
  const runsOf = (actionId: number) =>
    rows<{ id: number; state: string; reason: string | null; depth: number; cause: number | null }>(
      service.db,
      "SELECT id, state, reason, depth, cause_run_id AS cause FROM run WHERE action_id = $1 ORDER BY id",
      [actionId],
    );
  const publish = async (name: string, where: object): Promise<number> => {
    const [copy] = await insertPublishedActions(service.db, service.appId, [
      { name, triggers: [{ trigger: "log", where }] },
    ]);
    return copy!.id;
  };

  it("start only the actions of that data source, once for each entry and once for an import", async () => {
    const [source, otherSource] = [await make("one"), await make("other")];
    const created = await publish("created", { type: "dataSource.entry.create", dataSourceId: source });
    const imported = await publish("imported", { type: "dataSource.import", dataSourceId: source });
    await service.rest("POST", `${base}/${otherSource}/entries`, { body: { data: { n: 1 } } });
    expect(await runsOf(created)).to.deep.equal([]);
    await service.rest("POST", `${base}/${source}/entries`, { body: { data: { n: 1 } } });
    await service.rest("POST", `${base}/${source}/commit`, {
      body: { entries: [{ data: { n: 2 } }, { data: { n: 3 } }] },
    });
    expect(await runsOf(created)).to.have.length(3);
    await service.rest("POST", `${base}/${source}/import?append=true`, { body: [{ n: 4 }, { n: 5 }] });
    expect([(await runsOf(created)).length, (await runsOf(imported)).length]).to.deep.equal([3, 1]);
  });

  it("that write to the data source that started them are stopped at a depth of 8, with a log entry", async () => {
    const source = await make("self");
    const action = await publish("self", { type: "dataSource.entry.create", dataSourceId: source });
    const insert = (as?: string) =>
      service.rest("POST", `${base}/${source}/entries`, { body: { data: { n: 1 } }, ...(as && { as }) });
    await insert();
    for (let depth = 1; depth <= 9; depth += 1) {
      const last = (await runsOf(action)).at(-1)!;
      const answer = await insert(await issueTaskToken(service.db, service.appId, last.id));
      expect(answer.http).to.equal(201);
      expect((await runsOf(action)).at(-1)).to.include({ depth, cause: last.id });
    }
    const halted = (await runsOf(action)).at(-1)!;
    expect(halted).to.include({ state: "skipped", reason: "recursion: more than 8 runs deep" });
    const [entry] = await rows<{ data: { error: { name: string; message: string } } }>(
      service.db,
      "SELECT data FROM execution_log WHERE run_id = $1",
      [halted.id],
    );
    expect(entry!.data.error.name).to.equal("RecursionError");
    expect(entry!.data.error.message).to.contain(`run ${halted.id} (action ${action})`);
  });
});
