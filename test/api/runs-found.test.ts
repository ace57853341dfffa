/** Tests the run history: filters, search, counts over time, and replays with another payload. */
import { expect } from "chai";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { describeFilteredStatistics } from "./filtered-statistics.js";

const CODE = `async function execute(context) {
  console.log("printed", context.payload.word ?? "nothing");
  if (context.payload.fail) throw new RangeError("seat " + context.payload.fail + " is taken");
  if (context.payload.plain) return context.payload.answer;
  return { answer: context.payload.answer ?? null };
}`;

interface ListedRun {
  runs: { id: number; failure: string | null; resultPreview: string | null; state: string }[];
  pagination: { total: number; totalIsExact: boolean; hasMore: boolean; nextBefore: number | null };
}

describe("lists and statistics of runs", () => {
  let service: TestService;
  let base: string;
  let action: number;
  let other: number;

  const run = async (payload: object, name = "job", as = "editor"): Promise<number> => {
    const { body } = await service.rest("POST", `${base}/actions/${name}/run`, { body: payload, as });
    await until(async () => {
      const { body: now } = await service.rest("GET", `${base}/runs/${body.runId}`);
      return now.run.finishedAt;
    });
    return body.runId;
  };
  const found = async (query: string): Promise<ListedRun> => (await service.rest("GET", `${base}/runs?${query}`)).body;
  const idsOf = async (query: string) => (await found(query)).runs.map(({ id }) => id);
  const refusal = async (method: string, path: string, body?: unknown) => {
    const answer = await service.rest(method, base + path, { body });
    return [answer.http, answer.body.status, answer.body.error];
  };

  before(async () => {
    service = await startTestService();
    base = `/v3/apps/${service.appId}`;
    const make = async (name: string) => {
      const fields = { name, code: CODE, active: true, triggers: [{ trigger: "manual" }] };
      return (await service.rest("POST", `${base}/actions`, { body: fields })).body.action.id;
    };
    [action, other] = [await make("job"), await make("other")];
  });
  after(() => service.stop());

  it("find a run by a word of its payload, its result, its error or its console, and by no other", async () => {
    const payload = await run({ note: "Zanzibar" });
    const result = await run({ answer: "Quito" });
    const error = await run({ fail: "Luanda" });
    const console = await run({ word: "Oslo" });
    expect(await idsOf("search=zanzibar")).to.deep.equal([payload]);
    expect(await idsOf("search=Quito")).to.deep.equal([result]);
    expect(await idsOf("search=luanda")).to.deep.equal([error]);
    expect(await idsOf("search=oslo")).to.deep.equal([console]);
    expect(await idsOf("search=luanda+taken")).to.deep.equal([error]);
    expect(await idsOf("search=luanda+oslo")).to.deep.equal([]);
    expect((await found("search=luanda")).runs[0]).to.deep.include({
      state: "failed",
      failure: "RangeError: seat Luanda is taken",
      resultPreview: null,
    });
  });

  longTest("list the first 200 characters of each result, and read no long log entry for it", async () => {
    const payloadResult = { result: { data: "of the payload" }, success: true };
    const secret = "hush-hush-2121-hush";
    await service.rest("POST", `/v1/apps/${service.appId}/settings`, { body: { __secret: secret } });
    const masked = { told: secret, ...payloadResult };
    const wide = `${"a".repeat(198)}😀`;
    const cases: [payload: object, preview: string | null][] = [
      [{ answer: 7, ...payloadResult }, '{"answer":7}'],
      [{ answer: 8, ...masked }, '{"answer":8}'],
      [{ ...payloadResult, answer: '","success":true}}' }, JSON.stringify({ answer: '","success":true}}' })],
      [{ answer: "\0" }, '{"answer":"\\u0000"}'],
      [{ plain: true, answer: null }, "null"],
      [{ plain: true, answer: wide }, `"${"a".repeat(198)}\ufffd…`],
      [{ plain: true, answer: "x".repeat(198) }, `"${"x".repeat(198)}"`],
      [{ plain: true, answer: "x".repeat(199) }, `"${"x".repeat(199)}…`],
      [{ plain: true, answer: "x".repeat(20_000) }, `"${"x".repeat(199)}…`],
      [{ plain: true, answer: "x".repeat(70_000) }, null],
      [{ plain: true, ...masked, answer: "x".repeat(9_000) }, null],
      [{ plain: true }, null],
    ];
    for (const [payload, preview] of cases) {
      const id = await run(payload);
      const [listed] = (await found("limit=1")).runs;
      expect([listed!.id, listed!.resultPreview], JSON.stringify(payload).slice(0, 200)).to.deep.equal([id, preview]);
      const { body } = await service.rest("GET", `${base}/runs/${id}`, { as: "api" });
      expect(body.run.resultPreview).to.equal(preview);
    }
    await service.rest("DELETE", `/v1/apps/${service.appId}/settings`, { body: { keys: ["__secret"] } });
  });

  it("do not reveal by a search the text of a masked payload", async () => {
    const secret = "hush-hush-4242-hush";
    await service.rest("POST", `/v1/apps/${service.appId}/settings`, { body: { __secret: secret } });
    const id = await run({ told: secret, beside: "Nuuk" });
    expect(await idsOf("search=nuuk")).to.deep.equal([id]);
    expect(await idsOf(`search=${secret}`)).to.deep.equal([]);
    await service.rest("DELETE", `/v1/apps/${service.appId}/settings`, { body: { keys: ["__secret"] } });
  });

  it("filter by action, state, version, trigger, person and time, alone and together", async () => {
    const mine = await run({}, "other");
    const [{ queuedAt }] = (await found(`actionId=${other}`)).runs as unknown as [{ queuedAt: string }];
    expect(await idsOf(`actionId=${other}`)).to.deep.equal([mine]);
    expect((await found("state=failed")).runs.map(({ state }) => state)).to.deep.equal(["failed"]);
    expect(await idsOf(`state=failed&actionId=${other}`)).to.deep.equal([]);
    for (const live of ["live", "production"]) expect(await idsOf(`copy=${live}`)).to.deep.equal([]);
    expect(await idsOf("copy=draft")).to.deep.equal(await idsOf("copy=master"));
    expect((await idsOf("copy=master&trigger=manual")).length).to.equal((await idsOf("")).length);
    expect(await idsOf("trigger=log")).to.deep.equal([]);
    const { personId, person } = (await found("")).runs[0] as unknown as { personId: number; person: object };
    expect(person).to.have.all.keys("firstName", "lastName");
    expect((await idsOf(`personId=${personId}`))[0]).to.equal(mine);
    expect(await idsOf(`personId=${personId + 999}`)).to.deep.equal([]);
    const later = new Date(Date.parse(queuedAt) + 1).toISOString();
    expect(await idsOf(`from=${later}`)).to.deep.equal([]);
    expect((await idsOf(`to=${later}`))[0]).to.equal(mine);
    expect(await idsOf(`to=${queuedAt}`)).to.not.include(mine);
  });

  it("have pages by the last ID, and show names of people only to authors", async () => {
    const all = await idsOf("");
    const pagedIds: number[] = [];
    for (let before: number | null = all[0]! + 1; before !== null; ) {
      const page: ListedRun = await found(`limit=3&before=${before}`);
      expect(page.runs.length).to.be.within(1, 3);
      pagedIds.push(...page.runs.map(({ id }) => id));
      expect(page.pagination.hasMore).to.equal(page.pagination.nextBefore !== null);
      before = page.pagination.nextBefore;
    }
    expect(pagedIds).to.deep.equal(all);
    expect((await found("limit=2")).pagination).to.deep.include({ total: all.length, totalIsExact: true });
    const { body } = await service.rest("GET", `${base}/runs?limit=1`, { as: "api" });
    expect(body.runs[0].person).to.equal(null);
  });

  it("read ten thousand runs at a time, and return where to continue", async () => {
    const searchedRun = await run({ note: "Windhoek" });
    const [{ personId }] = (await found("limit=1")).runs as unknown as [{ personId: number }];
    await service.db.query(
      `INSERT INTO run (app_id, action_id, copy, trigger, payload, state, finished_at)
       SELECT $1, $2, 'master', 'manual', '{}', 'completed', now() FROM generate_series(1, 10010)`,
      [service.appId, other],
    );
    const first = await found(`personId=${personId}`);
    expect(first.runs).to.deep.equal([]);
    expect(first.pagination).to.deep.include({ total: 0, totalIsExact: false, hasMore: true });
    expect((await idsOf(`personId=${personId}&before=${first.pagination.nextBefore}`))[0]).to.equal(searchedRun);
    expect(await idsOf("search=windhoek")).to.deep.equal([searchedRun]);
    expect((await found("limit=1")).pagination).to.deep.include({ total: 10_000, totalIsExact: false });
    await service.db.query("DELETE FROM run WHERE action_id = $1 AND started_at IS NULL", [other]);
  });

  it("count runs, failures and durations by hour and by day", async () => {
    const { body } = await service.rest("GET", `${base}/runs/statistics?by=hour`);
    const runs = (await found("")).pagination.total;
    const sum = (key: string) =>
      body.periods.reduce((all: number, period: Record<string, number>) => all + period[key]!, 0);
    expect([body.status, body.countedFrom, sum("runs"), sum("failed")]).to.deep.equal(["RUNS_COUNTED", null, runs, 1]);
    const [{ p50, p95 }] = body.periods.slice(-1);
    expect(p50).to.be.above(0).and.at.most(p95);
    const day = (await service.rest("GET", `${base}/runs/statistics?by=day&actionId=${other}&timezone=Asia/Tokyo`))
      .body;
    expect(day.periods[0].runs).to.equal(1);
    expect(new Date(day.periods[0].start).getUTCHours()).to.equal(15);
  });

  it("reject invalid filters and ranges by name", async () => {
    const cases = {
      "state=lost": "state",
      "trigger=cron": "trigger",
      "copy=other": "copy",
      "personId=0": "personId",
      "versionId=x": "versionId",
      "from=yesterday": "from",
      "to=2026-11-31T00:00:00Z": "to",
      "to=2026-13-40T00:00:00Z": "to",
      "from=2026-11-22T00:00:00Z&to=2026-11-21T00:00:00Z": "from",
      "search=a": "search",
      "search=%21%3F%21": "search",
      "search=one+two+three+four+five+six": "search",
      "before=-1": "before",
    };
    for (const [query, field] of Object.entries(cases)) {
      const [http, status, error] = await refusal("GET", `/runs?${query}`);
      expect([http, status], query).to.deep.equal([400, "REQUEST_INVALID"]);
      expect(error, query).to.contain(field);
    }
    const long = "/runs/statistics?by=hour&from=2026-01-01T00:00:00Z&to=2026-11-01T00:00:00Z";
    expect((await refusal("GET", long)).slice(0, 2)).to.deep.equal([400, "REQUEST_INVALID"]);
    expect((await refusal("GET", "/runs/statistics?timezone=Mars"))[1]).to.equal("TIMEZONE_INVALID");
    expect((await refusal("GET", "/runs/statistics?by=week"))[1]).to.equal("REQUEST_INVALID");
  });

  it("list what waits and what runs, until it has ended", async () => {
    const busy = `async function execute() { await new Promise(() => {}) }`;
    const body = { name: "busy", code: busy, active: true, triggers: [{ trigger: "manual" }] };
    await service.rest("POST", `${base}/actions`, { body });
    const { runId } = (await service.rest("POST", `${base}/actions/busy/run`)).body;
    const unfinished = async () => (await service.rest("GET", `${base}/runs/unfinished`)).body;
    const listed = await unfinished();
    expect(listed).to.deep.include({ running: 1, queued: 0 });
    expect(listed.runs[0]).to.deep.include({ id: runId, state: "running", actionName: "busy" });
    await service.rest("POST", `${base}/runs/${runId}/cancel`);
    expect(await unfinished()).to.deep.include({ running: 0, queued: 0, runs: [] });
  });

  it("replay a past run with another payload, and show the runs that a run caused", async () => {
    const id = await run({ answer: 1 });
    const { body } = await service.rest("POST", `${base}/runs/${id}/replay`, { body: { payload: { answer: 2 } } });
    const again = await until(async () => {
      const { run } = (await service.rest("GET", `${base}/runs/${body.runId}`)).body;
      return run.log && run;
    });
    expect(again).to.deep.include({ replayOf: id, caused: [] });
    expect(again.log.data).to.deep.include({ payload: { answer: 2 }, result: { data: { answer: 2 }, success: true } });
    const [http, status] = await refusal("POST", `/runs/${id}/replay`, { payload: [1] });
    expect([http, status]).to.deep.equal([400, "PAYLOAD_INVALID"]);
    await service.db.query("UPDATE run SET cause_run_id = $1, chain_id = $1, depth = 1 WHERE id = $2", [
      id,
      body.runId,
    ]);
    const cause = (await service.rest("GET", `${base}/runs/${id}`)).body.run;
    expect(cause.caused.map((causedRun: { id: number }) => causedRun.id)).to.deep.equal([body.runId]);
  });

  it("store payload presets of an action by name, with a maximum number and size", async () => {
    const presets = `/actions/${action}/presets`;
    const put = (name: string, body: unknown) => service.rest("PUT", `${base}${presets}/${name}`, { body });
    await put("small", { seat: 1 });
    await put("large", { seat: 99 });
    expect((await put("small", { seat: 2 })).http).to.equal(200);
    const { body } = await service.rest("GET", base + presets);
    const named = body.presets.map(({ name, payload }: { name: string; payload: object }) => [name, payload]);
    expect(named).to.deep.equal([
      ["large", { seat: 99 }],
      ["small", { seat: 2 }],
    ]);
    expect((await refusal("PUT", `${presets}/bad`, [1])).slice(0, 2)).to.deep.equal([400, "PAYLOAD_INVALID"]);
    const huge = { text: "x".repeat(64 * 1024) };
    expect((await refusal("PUT", `${presets}/huge`, huge)).slice(0, 2)).to.deep.equal([400, "PAYLOAD_INVALID"]);
    expect((await refusal("PUT", "/actions/999999/presets/one", {})).slice(0, 2)).to.deep.equal([
      404,
      "ACTION_NOT_FOUND",
    ]);
    await service.db.query(
      "INSERT INTO payload_preset (action_id, name, payload) SELECT $1, 'n' || place, '{}' FROM generate_series(1, 48) place",
      [action],
    );
    expect((await refusal("PUT", `${presets}/more`, {})).slice(0, 2)).to.deep.equal([400, "REQUEST_INVALID"]);
    expect((await put("small", { seat: 3 })).http).to.equal(200);
    expect((await service.rest("DELETE", `${base}${presets}/small`)).body.presets).to.have.length(49);
    expect((await refusal("DELETE", `${presets}/small`)).slice(0, 2)).to.deep.equal([400, "REQUEST_INVALID"]);
  });

  it("return the problems that a save of code would have, with their position, and save nothing", async () => {
    const problems = async (code: unknown, dependencies: string[] = []) =>
      (await service.rest("POST", `${base}/actions/problems`, { body: { code, dependencies } })).body;
    expect((await problems(CODE)).problems).to.deep.equal([]);
    const [unclosed] = (await problems("async function execute(context) {\n  return (1;\n}")).problems;
    expect(unclosed).to.deep.include({ line: 2, dependency: null });
    const [lost] = (await problems("function execute() {}")).problems;
    expect(lost.message).to.contain("async");
    const uses = "async function execute() {\n  return [Svc.CSV, Svc.Media, Svc.CSV];\n}";
    const both = (await problems(uses)).problems;
    expect(both.map(({ dependency, line }: { dependency: string; line: number }) => [dependency, line])).to.deep.equal([
      ["svc-csv", 2],
      ["svc-media", 2],
    ]);
    expect((await problems(uses, ["svc-csv", "svc-media"])).problems).to.deep.equal([]);
    expect((await problems(7)).status).to.equal("REQUEST_INVALID");
  });

  describe("the week of schedules", () => {
    it("returns the coming runs, and what was skipped or failed, by day and with the reason", async () => {
      const base = `/v3/apps/${service.appId}`;
      await service.rest("POST", `/v1/apps/${service.appId}/publish`);
      const fields = { active: true, triggers: [{ trigger: "schedule" }], timezone: "Europe/Berlin" };
      const code = "async function execute() { return 1 }";
      const publish = async (name: string, frequency: string) => {
        const { body } = await service.rest("POST", `${base}/actions`, { body: { ...fields, name, frequency, code } });
        const published = await service.rest("POST", `${base}/actions/${body.action.id}/publish`);
        return published.body.action.id as number;
      };
      const daily = await publish("daily", "0 9 * * *");
      await publish("often", "*/2 * * * *");
      await service.db.query(
        `INSERT INTO run (app_id, action_id, copy, trigger, payload, tick, reason, state, finished_at)
       SELECT $1, $2, 'production', 'schedule', '{}', date_trunc('day', now()) - interval '1 day' + place * interval '1 minute',
              'down at that time', 'skipped', now() FROM generate_series(1, 3) place`,
        [service.appId, daily],
      );
      const { body } = await service.rest("GET", `${base}/schedule/week`);
      expect(body.status).to.equal("SCHEDULE_LISTED");
      const byName = Object.fromEntries(body.scheduled.map((action: { name: string }) => [action.name, action]));
      expect(byName.daily).to.deep.include({ actionId: daily, timezone: "Europe/Berlin", hasMore: false });
      expect(byName.daily.ticks).to.have.length(7);
      expect(byName.often.hasMore).to.equal(true);
      expect(byName.often.ticks).to.have.length(170);
      expect(body.missed).to.have.length(1);
      expect(body.missed[0]).to.deep.include({
        ...{ name: "daily", state: "skipped", reason: "down at that time", count: 3 },
        timezone: "Europe/Berlin",
      });
    });
  });

  // These tests must be last: they insert runs that the test of the week of schedules would otherwise list.
  describeFilteredStatistics(() => ({ service, actionIds: [action, other] }));
});
