/** Tests statistics of runs with filters: they must count the same runs that the list of runs returns with these filters. */
import { expect } from "chai";
import { RUN_STATES } from "../../src/data/run.js";
import { TRIGGER_TYPES } from "../../src/rules/trigger-input.js";
import { longTest, sampleOf } from "../harness/samples.js";
import { deleteStoredRuns, insertSearchedRuns } from "../harness/searched-runs.js";
import type { TestService } from "../harness/service.js";

const RUN_COUNT = 120;
const DAY_MS = 24 * 60 * 60 * 1000;
/** Word that a search finds in a third of the inserted runs. */
const SEARCHED_WORD = "lima";

/** Stores ended and skipped runs, queued 23 minutes apart from `start` on. The person `personId` started about half of them. */
const insertEndedRuns = (
  { db }: TestService,
  appId: number,
  { actionIds, personId, start }: { actionIds: readonly number[]; personId: number; start: Date },
) =>
  db.query(
    `WITH stored AS (
       INSERT INTO run (app_id, action_id, copy, trigger, payload, state, version_id, person_id, tick_count, reason, queued_at, started_at, finished_at)
       SELECT $1, ($2::bigint[])[1 + n / 2 % 2], (ARRAY['master', 'production'])[1 + n / 3 % 2],
              (ARRAY['manual', 'schedule', 'log', 'analytics', 'http'])[1 + n % 5], '{}',
              (ARRAY['completed', 'failed', 'skipped', 'cancelled'])[1 + n % 4], CASE WHEN n % 7 < 3 THEN 7 + n % 2 END,
              CASE WHEN n / 5 % 2 = 0 THEN $3::bigint END, CASE WHEN n % 4 = 2 THEN 1 + n % 3 ELSE 1 END, CASE WHEN n % 4 = 2 THEN 'paused' END,
              $4::timestamptz + n * interval '23 minutes', $4::timestamptz + n * interval '23 minutes',
              $4::timestamptz + n * interval '23 minutes' + (n * n % 97) * interval '1 millisecond'
         FROM generate_series(1, ${RUN_COUNT}) AS n RETURNING id, app_id)
     INSERT INTO run_search (run_id, words) SELECT id, svc_search_words(app_id, '${SEARCHED_WORD}') FROM stored WHERE id % 3 = 0`,
    [appId, actionIds, personId, start],
  );

interface CountedRun {
  state: string;
  tickCount: number;
  queuedAt: string;
  startedAt: string | null;
  finishedAt: string | null;
}

/** Returns the smallest duration that is at least as long as this share of all durations; null if there are no durations. */
const percentile = (durations: readonly number[], share: number): number | null =>
  durations.toSorted((a, b) => a - b)[Math.ceil(share * durations.length) - 1] ?? null;

function countByHour(runs: readonly CountedRun[]) {
  const byHour = Map.groupBy(runs, ({ queuedAt }) => `${queuedAt.slice(0, 13)}:00:00.000Z`);
  return [...byHour.entries()]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([start, listed]) => {
      const count = (...states: string[]) => listed.filter(({ state }) => states.includes(state)).length;
      const durations = listed
        .filter(({ state }) => state === "completed" || state === "failed")
        .map(({ startedAt, finishedAt }) => Date.parse(finishedAt!) - Date.parse(startedAt!));
      const skipped = listed.filter(({ state }) => state === "skipped").reduce((all, run) => all + run.tickCount, 0);
      return {
        start,
        ...{ runs: listed.length - count("skipped"), failed: count("failed"), cancelled: count("cancelled"), skipped },
        ...{ p50: percentile(durations, 0.5), p95: percentile(durations, 0.95) },
      };
    });
}

/** Returns query strings: one without a filter, one for each filter, and one for each pair of filters. */
function filterQueries(valuesByFilter: Readonly<Record<string, readonly unknown[]>>): string[] {
  const single = Object.entries(valuesByFilter).flatMap(([name, values]) =>
    values.map((value) => ({ name, text: `${name}=${encodeURIComponent(String(value))}` })),
  );
  const pairs = single.flatMap((first, at) =>
    single.slice(at + 1).flatMap(({ name, text }) => (name === first.name ? [] : [`${first.text}&${text}`])),
  );
  return ["", ...single.map(({ text }) => text), ...pairs];
}

/**
 * Declares the tests.
 * @param setUp returns the service and two actions; called when the tests start
 */
export const describeFilteredStatistics = (setUp: () => { service: TestService; actionIds: [number, number] }) =>
  describe("the statistics of filtered runs", () => {
    let service: TestService;
    let base: string;
    let action: number;
    let other: number;

    const counted = async (query: string) => (await service.rest("GET", `${base}/runs/statistics?${query}`)).body;
    const rejection = async (path: string) => {
      const { http, body } = await service.rest("GET", `${base}/${path}`);
      return [http, body.status, body.error];
    };

    before(() => {
      const started = setUp();
      service = started.service;
      base = `/v3/apps/${service.appId}`;
      [action, other] = started.actionIds;
    });

    it("require the rights of the list, and reject the filters that the list rejects, with the same error", async () => {
      for (const as of [...Object.keys(service.tokens), null, "unknown"]) {
        for (const app of [base, "/v3/apps/999999"]) {
          const [list, statistics] = await Promise.all(
            ["runs", "runs/statistics"].map((path) => service.rest("GET", `${app}/${path}?state=failed`, { as })),
          );
          const label = `${as} ${app}`;
          expect([statistics!.http, statistics!.body.error], label).to.deep.equal([list!.http, list!.body.error]);
        }
      }
      const invalid = "state=lost trigger=cron copy=other versionId=x personId=0 search=a search=%21%3F";
      for (const query of invalid.split(" ")) {
        const [list, statistics] = [await rejection(`runs?${query}`), await rejection(`runs/statistics?${query}`)];
        expect(list[0], query).to.equal(400);
        expect(statistics, query).to.deep.equal(list);
      }
    });

    it("say from when they count if a search finds more runs than it returns", async () => {
      const times = await insertSearchedRuns(service, { actionId: other, word: "tirana", count: 1005 });
      const timeOf = (at: number): string => times[at]!.toISOString();
      const sumOf = ({ periods }: { periods: { runs: number }[] }) => periods.reduce((all, { runs }) => all + runs, 0);
      const partialCount = await counted("search=tirana");
      expect([partialCount.countedFrom, sumOf(partialCount)]).to.deep.equal([timeOf(5), 1_000]);
      const complete = await counted(`search=tirana&from=${timeOf(6)}`);
      expect([complete.countedFrom, sumOf(complete)]).to.deep.equal([null, 999]);
      const emptyCount = await counted("search=tirana&state=failed");
      expect([emptyCount.countedFrom, emptyCount.periods]).to.deep.equal([timeOf(5), []]);
      await deleteStoredRuns(service, other);
    });

    longTest("say from when they count if a range has more runs than they compare with the filters", async () => {
      await service.db.query(
        `INSERT INTO run (app_id, action_id, copy, trigger, payload, state, queued_at, finished_at)
       SELECT $1, $2, 'master', 'manual', '{}', 'completed', now() - interval '1 hour' + n * interval '10 milliseconds', now()
         FROM generate_series(1, 100005) AS n`,
        [service.appId, other],
      );
      const sql = "SELECT queued_at AS time FROM run WHERE action_id = $1 ORDER BY id DESC LIMIT 1 OFFSET 99999";
      const [{ time }] = await service.db.query(sql, [other]);
      const { countedFrom, periods } = await counted(`trigger=http&actionId=${other}`);
      expect([countedFrom, periods]).to.deep.equal([time.toISOString(), []]);
      expect((await counted("state=failed")).countedFrom).to.equal(null);
      await deleteStoredRuns(service, other);
    });

    describe("of generated runs", () => {
      let range: string;
      let queries: string[];

      before(async () => {
        // The service expects that a run with a higher ID was queued later. So these runs are queued after those of all other tests.
        const start = new Date(Math.floor(Date.now() / DAY_MS + 2) * DAY_MS);
        const end = new Date(start.getTime() + 3 * DAY_MS);
        const [first, second] = [1, 2].map((days) => new Date(start.getTime() + days * DAY_MS).toISOString());
        range = `from=${start.toISOString()}&to=${end.toISOString()}`;
        const [{ id: personId }] = await service.db.query("SELECT id FROM person ORDER BY id LIMIT 1");
        const sql =
          "INSERT INTO app (organization_id, name) SELECT organization_id, 'other' FROM app WHERE id = $1 RETURNING id";
        const [{ id: otherApp }] = await service.db.query(sql, [service.appId]);
        // The runs of the other app have the same actions and people, so that only the app distinguishes them.
        const samples = { actionIds: [action, other], personId, start };
        for (const appId of [service.appId, otherApp]) await insertEndedRuns(service, appId, samples);
        queries = filterQueries({
          actionId: [action, other, other + 999],
          state: RUN_STATES,
          trigger: TRIGGER_TYPES,
          copy: ["draft", "live"],
          versionId: [7, 8],
          personId: [personId, personId + 999],
          search: [SEARCHED_WORD, "absent"],
          from: [first],
          to: [second],
        });
      });

      it("count the runs of the list, under each filter and under two together, and no run of another app", async () => {
        for (const query of [...queries.slice(0, 25), ...sampleOf(queries.slice(25), 0, 9)]) {
          // If the query has a filter `from` or `to`, this filter replaces that end of the range.
          const url = new URLSearchParams(`${range}&${query}`);
          for (const name of ["from", "to"]) if (url.getAll(name).length > 1) url.set(name, url.getAll(name)[1]!);
          const { runs, pagination } = (await service.rest("GET", `${base}/runs?${url}&limit=1000`)).body;
          expect(pagination.hasMore, query).to.equal(false);
          const { periods, countedFrom } = await counted(`${url}&by=hour`);
          expect(periods, query).to.deep.equal(countByHour(runs));
          expect(countedFrom, query).to.equal(null);
        }
        expect((await counted(range)).periods).to.have.length.above(20);
      });

      it("have the same filters in GraphQL", async () => {
        const { periods } = await counted(`${range}&state=failed&trigger=log&copy=live&search=${SEARCHED_WORD}`);
        const [from, to] = [...new URLSearchParams(range).values()];
        const text = `{ runStatistics(appId: ${service.appId}, from: "${from}", to: "${to}", state: failed, trigger: log, copy: production,
        search: "${SEARCHED_WORD}") { periods { start runs failed } } }`;
        const { data } = (await service.graphql(text)) as { data: { runStatistics: { periods: { start: string }[] } } };
        expect(periods).to.not.deep.equal([]);
        expect(data.runStatistics.periods).to.deep.equal(
          periods.map(({ start, runs, failed }: Record<string, unknown>) => ({ start, runs, failed })),
        );
      });
    });
  });
