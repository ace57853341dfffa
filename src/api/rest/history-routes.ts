/** REST routes of runs (search, statistics, replay): entries for the route table in rest/routes.ts. */
import type { RunFilterArguments, RunsArguments } from "../graphql/history-types.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const APP_V3_ROUTE = "/v3/apps/:appId";

const readRunFilters = (request: RestRequest): RunFilterArguments & Pick<RunsArguments, "from" | "to"> => ({
  actionId: request.queryNumber("actionId"),
  state: request.queryText("state"),
  trigger: request.queryText("trigger"),
  copy: request.queryText("copy"),
  versionId: request.queryNumber("versionId"),
  personId: request.queryNumber("personId"),
  from: request.queryText("from"),
  to: request.queryText("to"),
  search: request.queryText("search"),
});

const readRunsArguments = (request: RestRequest): RunsArguments => ({
  ...readRunFilters(request),
  before: request.queryNumber("before"),
  ...(request.queryNumber("limit") !== undefined && { limit: request.queryNumber("limit")! }),
  ...(request.queryNumber("offset") !== undefined && { offset: request.queryNumber("offset")! }),
});

export const historyRoutes: readonly Route[] = [
  {
    method: "GET",
    path: `${APP_V3_ROUTE}/runs`,
    handle: async ({ runHistory }, request) => ({
      status: "RUNS_LISTED",
      ...(await runHistory.runs(request.context, request.pathId("appId"), readRunsArguments(request))),
    }),
  },
  {
    method: "GET",
    path: `${APP_V3_ROUTE}/runs/unfinished`,
    handle: async ({ runHistory }, request) => ({
      status: "RUNS_LISTED",
      ...(await runHistory.unfinishedRuns(request.context, request.pathId("appId"))),
    }),
  },
  {
    method: "GET",
    path: `${APP_V3_ROUTE}/runs/statistics`,
    handle: async ({ runHistory }, request) => ({
      status: "RUNS_COUNTED",
      ...(await runHistory.runStatistics(request.context, request.pathId("appId"), {
        ...readRunFilters(request),
        by: request.queryText("by"),
        timezone: request.queryText("timezone"),
      })),
    }),
  },
  {
    method: "GET",
    path: `${APP_V3_ROUTE}/runs/:runId`,
    handle: async ({ runHistory }, request) => {
      const run = await runHistory.run(request.context, request.pathId("appId"), request.pathId("runId"));
      const [log, caused] = [await runHistory.log(run, request.context), await runHistory.caused(run, request.context)];
      const requests = await runHistory.requests(run);
      return { status: "RUN_RETRIEVED", run: { ...run, log, requests, caused } };
    },
  },
  {
    method: "POST",
    path: `${APP_V3_ROUTE}/runs/:runId/replay`,
    successStatus: 202,
    handle: async ({ runHistory }, request) => ({
      status: "ACTION_QUEUED",
      ...(await runHistory.replayRun(
        request.context,
        request.pathId("appId"),
        request.pathId("runId"),
        request.bodyFields(),
      )),
    }),
  },
];
