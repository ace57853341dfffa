/** Runs over REST (search, statistics, replay), as rows of the REST table. */
import type { RunsArguments } from "../graphql/history-types.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const APP = "/v3/apps/:appId";

const runsArguments = (q: RestRequest): RunsArguments => ({
  actionId: q.number("actionId"),
  state: q.text("state"),
  trigger: q.text("trigger"),
  copy: q.text("copy"),
  versionId: q.number("versionId"),
  personId: q.number("personId"),
  from: q.text("from"),
  to: q.text("to"),
  search: q.text("search"),
  before: q.number("before"),
  ...(q.number("limit") !== undefined && { limit: q.number("limit")! }),
  ...(q.number("offset") !== undefined && { offset: q.number("offset")! }),
});

export const historyRoutes: readonly Route[] = [
  {
    method: "GET",
    path: `${APP}/runs`,
    answer: async ({ history }, q) => ({
      status: "RUNS_LISTED",
      ...(await history.runs(q.context, q.id("appId"), runsArguments(q))),
    }),
  },
  {
    method: "GET",
    path: `${APP}/runs/unfinished`,
    answer: async ({ history }, q) => ({
      status: "RUNS_LISTED",
      ...(await history.unfinishedRuns(q.context, q.id("appId"))),
    }),
  },
  {
    method: "GET",
    path: `${APP}/runs/statistics`,
    answer: async ({ history }, q) => ({
      status: "RUNS_COUNTED",
      ...(await history.runStatistics(q.context, q.id("appId"), {
        actionId: q.number("actionId"),
        from: q.text("from"),
        to: q.text("to"),
        by: q.text("by"),
        timezone: q.text("timezone"),
      })),
    }),
  },
  {
    method: "GET",
    path: `${APP}/runs/:runId`,
    answer: async ({ history }, q) => {
      const run = await history.run(q.context, q.id("appId"), q.id("runId"));
      const [log, caused] = [await history.log(run, q.context), await history.caused(run, q.context)];
      const requests = await history.requests(run);
      return { status: "RUN_RETRIEVED", run: { ...run, log, requests, caused } };
    },
  },
  {
    method: "POST",
    path: `${APP}/runs/:runId/replay`,
    http: 202,
    answer: async ({ history }, q) => ({
      status: "ACTION_QUEUED",
      ...(await history.replayRun(q.context, q.id("appId"), q.id("runId"), q.object())),
    }),
  },
];
