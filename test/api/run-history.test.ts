import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const codeOf = (mark: string) => `async function execute(context) { return { mark: "${mark}", ...context.payload }; }`;

describe("runs over REST and GraphQL", () => {
  let service: TestService;
  let base: string;
  let master: number;
  let production: number;
  let version: number;

  const post = (path: string, body: object = {}, as = "editor") => service.rest("POST", base + path, { body, as });
  const runs = async (query = "") => (await service.rest("GET", `${base}/runs${query}`)).body;
  const entryOf = (runId: number) =>
    until(async () => {
      const [row] = await service.db.query(
        "SELECT svc_entry_data(data, payload_at, run_id)::json AS data FROM execution_log WHERE run_id = $1",
        [runId],
      );
      return row?.data;
    });

  before(async () => {
    service = await startTestService();
    base = `/v3/apps/${service.appId}`;
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
    // This schedule is due only once a year, because a further run would change the results. A test makes the schedule due by SQL.
    const triggers = [{ trigger: "manual" }, { trigger: "schedule" }];
    const fields = { name: "job", code: codeOf("first"), active: true, triggers, frequency: "0 0 1 1 *" };
    master = (await post("/actions", fields)).body.action.id;
    production = (await post(`/actions/${master}/publish`)).body.action.id;
    await service.rest("PUT", `${base}/actions/${master}`, { body: { code: codeOf("second") } });
    const { body } = await service.rest("GET", `${base}/actions/${master}/versions`);
    version = body.versions.at(-1).id;
    await service.rest("PUT", `${base}/actions/${master}`, { body: { code: codeOf("third") } });
  });
  after(() => service.stop());

  it("execute a due schedule once, with {} as payload and without a stored result", async () => {
    await service.db.query("UPDATE schedule SET next_tick = now() - interval '1 second'");
    await service.db.query("SELECT pg_notify('svc_schedule', '')");
    const run = await until(async () =>
      (await runs(`?actionId=${master}&state=completed`)).runs.find((candidate: { tick: unknown }) => candidate.tick),
    );
    expect(run).to.deep.include({ actionId: production, copy: "production", trigger: "schedule", reason: null });
    const data = await entryOf(run.id);
    expect(data).to.deep.include({ mode: "scheduled", payload: {}, runOn: "server", taskId: production });
    expect(data).to.not.have.any.keys("result", "error");
    const [row] = await service.db.query("SELECT id FROM execution_log WHERE run_id = $1", [run.id]);
    expect(run.logId).to.equal(row.id);
  });

  it("return one run in any state, with its final log entry", async () => {
    const { runId } = (await post("/actions/job/runWithResult", { n: 7 }, "api")).body;
    const { http, body } = await service.rest("GET", `${base}/runs/${runId}`);
    expect([http, body.status]).to.deep.equal([200, "RUN_RETRIEVED"]);
    expect(body.run).to.deep.include({ id: runId, actionId: production, state: "completed", trigger: "manual" });
    expect(body.run.log).to.deep.include({ id: body.run.logId, type: "app.task.completed" });
    expect(body.run.log.data.result).to.deep.equal({ data: { mark: "first", n: 7 }, success: true });
    const query = `{ run(appId: ${service.appId}, runId: ${runId}) { state log { id duration result } } }`;
    const { run } = (await service.graphql(query)).data;
    expect(run).to.deep.equal({
      state: "completed",
      log: { id: body.run.logId, duration: body.run.log.data.duration, result: body.run.log.data.result },
    });
    const queued = await service.db.query(
      `INSERT INTO run (app_id, action_id, copy, trigger, state, payload, tick, reason, finished_at)
       VALUES ($1, $2, 'production', 'schedule', 'skipped', '{}', now(), 'late', now()) RETURNING id`,
      [service.appId, master],
    );
    const skipped = (await service.rest("GET", `${base}/runs/${queued[0].id}`)).body.run;
    expect(skipped).to.deep.include({ state: "skipped", log: null });
    await service.db.query("DELETE FROM run WHERE id = $1", [skipped.id]);
    for (const unknownRunId of ["0", "x", "999999"]) {
      const refused = await service.rest("GET", `${base}/runs/${unknownRunId}`);
      expect([refused.http, refused.body.status]).to.deep.equal([404, "RUN_NOT_FOUND"]);
    }
  });

  it("list runs most recent first, by the ID of draft or live version, by state and page", async () => {
    for (const n of [1, 2, 3]) await post("/actions/job/runWithResult", { n }, n === 3 ? "api" : "editor");
    const all = await runs();
    expect(all.status).to.equal("RUNS_LISTED");
    const ids = all.runs.map(({ id }: { id: number }) => id);
    expect(ids).to.deep.equal([...ids].sort((a, b) => b - a));
    expect(await runs(`?actionId=${production}`)).to.deep.equal(await runs(`?actionId=${master}`));
    const page = await runs("?limit=1&offset=1");
    const pagination = { total: ids.length, totalIsExact: true, hasMore: true, nextBefore: ids[1] };
    expect(page).to.deep.include({ runs: [all.runs[1]], pagination });
    expect((await runs("?state=skipped")).runs).to.deep.equal([]);
    const { data } = await service.graphql(
      "{ runs(appId: 1, limit: 1) { runs { id state copy } pagination { total } } }",
    );
    expect(data.runs.runs[0]).to.deep.equal({ id: ids[0], state: "completed", copy: "production" });
  });

  it("reject invalid filters, and readers without the right", async () => {
    for (const query of ["?state=lost", "?limit=x", "?actionId=0", "?actionId=a"]) {
      const { http, body } = await service.rest("GET", `${base}/runs${query}`);
      expect([http, body.status], query).to.deep.equal([400, "REQUEST_INVALID"]);
    }
    expect((await service.rest("GET", `${base}/runs`, { as: "viewer" })).http).to.equal(403);
  });

  it("replay a past payload with the version that ran, another one or a stored one, and mark the new run", async () => {
    const { body: first } = await post("/actions/job/runWithResult", { n: 7 });
    expect(first.result).to.deep.equal({ mark: "third", n: 7 });
    const expected = [
      [{}, "third", master],
      [{ copy: "master" }, "third", master],
      [{ copy: "draft" }, "third", master],
      [{ copy: "live" }, "first", production],
      [{ copy: "production" }, "first", production],
      [{ versionId: version }, "first", master],
    ] as const;
    for (const [options, mark, taskId] of expected) {
      const { http, body } = await post(`/runs/${first.runId}/replay`, options);
      expect([http, body.status]).to.deep.equal([202, "ACTION_QUEUED"]);
      const data = await entryOf(body.runId);
      expect(data).to.deep.include({ payload: { n: 7 }, taskId, replayOf: first.runId, mode: "on-demand" });
      expect(data.result.data).to.deep.equal({ mark, n: 7 });
      expect((await runs()).runs[0]).to.deep.include({ id: body.runId, replayOf: first.runId });
    }
    const { data } = await service.graphql(
      `mutation { replayRun(appId: 1, runId: ${first.runId}, options: { copy: production }) { runId } }`,
    );
    expect((await entryOf(data.replayRun.runId)).result.data.mark).to.equal("first");
  });

  it("replay a version whose filter has a character that PostgreSQL's JSON functions reject", async () => {
    const filter = { trigger: "analytics", where: { type: "analytics.event", data: { k: "\u0000" } } };
    const fields = { name: "odd", code: codeOf("odd"), active: true, environment: "any" };
    const { action } = (await post("/actions", { ...fields, triggers: [{ trigger: "manual" }, filter] })).body;
    const { versions } = (await service.rest("GET", `${base}/actions/${action.id}/versions`)).body;
    const { runId } = (await post("/actions/odd/runWithResult", { n: 1 })).body;
    const { http, body } = await post(`/runs/${runId}/replay`, { versionId: versions[0].id });
    expect(http).to.equal(202);
    expect((await entryOf(body.runId)).result.data).to.deep.equal({ mark: "odd", n: 1 });
  });

  it("belong to their action while it is not published, and after it was published again", async () => {
    const fields = { name: "twice", code: codeOf("one"), active: true, triggers: [{ trigger: "manual" }] };
    const draft = (await post("/actions", fields)).body.action.id;
    const live = (await post(`/actions/${draft}/publish`)).body.action.id;
    const { runId } = (await post("/actions/twice/runWithResult", { n: 1 }, "api")).body;
    const { lastRunAt } = (await service.rest("GET", `${base}/actions/${live}`)).body.action;
    expect(lastRunAt).to.be.a("string");
    expect((await post(`/actions/${draft}/unpublish`)).http).to.equal(200);
    const expected = { id: runId, actionId: live, actionName: "twice", masterId: draft, copy: "production" };
    for (const id of [draft, live]) {
      const { runs: listed } = await runs(`?actionId=${id}`);
      expect(listed).to.have.length(1);
      expect(listed[0]).to.deep.include(expected);
    }
    const refused = await post(`/runs/${runId}/replay`);
    expect([refused.http, refused.body.status]).to.deep.equal([404, "ACTION_NOT_FOUND"]);
    const draftReplay = await post(`/runs/${runId}/replay`, { copy: "draft" });
    expect(draftReplay.http).to.equal(202);
    expect((await entryOf(draftReplay.body.runId)).result.data).to.deep.equal({ mark: "one", n: 1 });

    await service.rest("PUT", `${base}/actions/${draft}`, { body: { code: codeOf("two") } });
    expect((await post(`/actions/${draft}/publish`)).body.action).to.include({ id: live, lastRunAt });
    const liveReplay = await post(`/runs/${runId}/replay`);
    expect(liveReplay.http).to.equal(202);
    expect((await entryOf(liveReplay.body.runId)).result.data).to.deep.equal({ mark: "two", n: 1 });
    expect((await runs(`?actionId=${draft}`)).runs.map(({ id }: { id: number }) => id)).to.deep.equal([
      liveReplay.body.runId,
      draftReplay.body.runId,
      runId,
    ]);
    const { body } = await service.rest("DELETE", `${base}/actions/${draft}`);
    expect(body.status).to.equal("ACTION_DELETED");
    expect((await runs()).runs[0]).to.deep.include({ actionId: live, actionName: null, masterId: null });
  });

  it("reject a replay of an unknown run, and by a caller who is no author", async () => {
    const { body } = await post("/actions/job/runWithResult");
    const replay = (runId: unknown, options: object, as = "editor") => post(`/runs/${runId}/replay`, options, as);
    const refusals = [
      [await replay(999_999, {}), 404, "RUN_NOT_FOUND"],
      [await replay("x", {}), 404, "RUN_NOT_FOUND"],
      [await replay(body.runId, { versionId: 999_999 }), 404, "VERSION_NOT_FOUND"],
      [await replay(body.runId, { copy: "other" }), 400, "REQUEST_INVALID"],
      [await replay(body.runId, { copy: "production", versionId: version }), 400, "REQUEST_INVALID"],
      [await replay(body.runId, {}, "api"), 403, "FORBIDDEN"],
    ] as const;
    for (const [answer, http, status] of refusals) {
      expect([answer.http, answer.body.status]).to.deep.equal([http, status]);
    }
  });

  it("preview a frequency: a sentence, and its ticks in UTC and in local time", async () => {
    const query = `frequency=${encodeURIComponent("30 9 * * 1-5")}&timezone=Europe/Berlin&count=3`;
    const { http, body } = await service.rest("GET", `${base}/schedule/preview?${query}`);
    expect(http).to.equal(200);
    expect(body).to.deep.include({ status: "SCHEDULE_PREVIEWED", timezone: "Europe/Berlin" });
    expect(body.description).to.equal("At 09:30, Monday through Friday");
    expect(body.ticks).to.have.length(3);
    for (const { utc, local } of body.ticks) {
      expect(local).to.match(/T09:30:00\+0[12]:00$/);
      expect(new Date(local).toISOString()).to.equal(utc);
    }
    const { data } = await service.graphql(
      '{ nextRuns(appId: 1, frequency: "0 0 * * *") { description timezone ticks { utc local } } }',
    );
    expect(data.nextRuns).to.deep.include({ description: "At 00:00", timezone: "UTC" });
    expect(data.nextRuns.ticks).to.have.length(5);
  });

  it("reject a preview of an invalid schedule, with the status of a save", async () => {
    const preview = (query: string) => service.rest("GET", `${base}/schedule/preview?${query}`);
    const refusals = [
      ["frequency=x", "FREQUENCY_INVALID"],
      ["", "FREQUENCY_INVALID"],
      ["frequency=*%20*%20*%20*%20*", "FREQUENCY_TOO_FREQUENT"],
      ["frequency=0%200%20*%20*%20*&timezone=EST5", "TIMEZONE_INVALID"],
      ["frequency=0%200%20*%20*%20*&count=101", "REQUEST_INVALID"],
    ] as const;
    for (const [query, status] of refusals) {
      const { http, body } = await preview(query);
      expect([http, body.status], query).to.deep.equal([400, status]);
    }
  });
});
