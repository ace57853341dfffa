/** REST routes of runs (search, statistics, replay): entries for the route table in rest/routes.ts. */
import type { RunFilterArguments, RunsArguments } from "../graphql/history-types.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const APP = "/v3/apps/:appId";

/** Returns the filters that lists and statistics of runs have in common. */
const runFilterArguments = (request: RestRequest): RunFilterArguments & Pick<RunsArguments, "from" | "to"> => ({
  actionId: request.number("actionId"),
  state: request.text("state"),
  trigger: request.text("trigger"),
  copy: request.text("copy"),
  versionId: request.number("versionId"),
  personId: request.number("personId"),
  from: request.text("from"),
  to: request.text("to"),
  search: request.text("search"),
});

const runsArguments = (request: RestRequest): RunsArguments => ({
  ...runFilterArguments(request),
  before: request.number("before"),
  ...(request.number("limit") !== undefined && { limit: request.number("limit")! }),
  ...(request.number("offset") !== undefined && { offset: request.number("offset")! }),
});

export const historyRoutes: readonly Route[] = [
  {
    method: "GET",
    path: `${APP}/runs`,
    handle: async ({ history }, request) => ({
      status: "RUNS_LISTED",
      ...(await history.runs(request.context, request.id("appId"), runsArguments(request))),
    }),
  },
  {
    method: "GET",
    path: `${APP}/runs/unfinished`,
    handle: async ({ history }, request) => ({
      status: "RUNS_LISTED",
      ...(await history.unfinishedRuns(request.context, request.id("appId"))),
    }),
  },
  {
    method: "GET",
    path: `${APP}/runs/statistics`,
    handle: async ({ history }, request) => ({
      status: "RUNS_COUNTED",
      ...(await history.runStatistics(request.context, request.id("appId"), {
        ...runFilterArguments(request),
        by: request.text("by"),
        timezone: request.text("timezone"),
      })),
    }),
  },
  {
    method: "GET",
    path: `${APP}/runs/:runId`,
    handle: async ({ history }, request) => {
      const run = await history.run(request.context, request.id("appId"), request.id("runId"));
      const [log, caused] = [await history.log(run, request.context), await history.caused(run, request.context)];
      const requests = await history.requests(run);
      return { status: "RUN_RETRIEVED", run: { ...run, log, requests, caused } };
    },
  },
  {
    method: "POST",
    path: `${APP}/runs/:runId/replay`,
    successStatus: 202,
    handle: async ({ history }, request) => ({
      status: "ACTION_QUEUED",
      ...(await history.replayRun(request.context, request.id("appId"), request.id("runId"), request.object())),
    }),
  },
];
