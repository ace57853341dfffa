/** MCP tools that run actions and read their state, result, console and log. Text that a run wrote is marked as untrusted. */
import { z } from "zod";
import { defineMcpTool, MCP_TOOL_INPUT_FIELDS, type McpTool, type McpToolContext } from "./tool.js";

const APP_V3_ROUTE = "/v3/apps/:appId";
const RUN_ROUTE = `${APP_V3_ROUTE}/actions/:nameOrId/run`;
const UNFINISHED_STATES = ["queued", "running"];
/** Maximum time that a tool waits for a run, in seconds. MCP clients end a request after 60 s by default. */
const WAIT_MAX_SECONDS = 50;

const waitSecondsSchema = z.int().min(0).max(WAIT_MAX_SECONDS);

async function readRun({ callRest, appId }: McpToolContext, runId: number) {
  const { run } = await callRest("GET", `${APP_V3_ROUTE}/runs/:runId`, { params: { appId, runId } });
  return run as Record<string, unknown> & { state: string };
}

async function readConsole({ callRest, appId }: McpToolContext, runId: number): Promise<unknown> {
  return (await callRest("GET", `${APP_V3_ROUTE}/runs/:runId/console`, { params: { appId, runId } })).lines;
}

const hasEnded = ({ state }: { state: string }): boolean => !UNFINISHED_STATES.includes(state);

/**
 * Returns the run when it has ended, or unfinished when `seconds` have passed.
 * @throws ActionError REQUEST_INVALID if the client disconnects, OVERLOADED if the service stops
 */
async function waitForRun(context: McpToolContext, runId: number, seconds: number) {
  const { disconnectSignal, waitForRunEnd } = context;
  const timeLimitSignal = AbortSignal.timeout(seconds * 1000);
  await waitForRunEnd(runId, disconnectSignal, timeLimitSignal).catch((error: unknown) => {
    if (!timeLimitSignal.aborted || disconnectSignal.aborted) throw error;
  });
  return readRun(context, runId);
}

async function startRun(
  context: McpToolContext,
  copy: "draft" | "live",
  { action, payload, wait }: { action: number | string; payload: object; wait: number },
) {
  const { callRest, appId } = context;
  const query = { copy, ...(typeof action === "string" && { by: "name" }) };
  const { runId } = await callRest("POST", RUN_ROUTE, { params: { appId, nameOrId: action }, query, body: payload });
  if (wait === 0) return { data: { runId } };
  const run = await waitForRun(context, runId, wait);
  const lines = hasEnded(run) ? await readConsole(context, runId) : [];
  return { data: { runId, run, console: lines }, isUntrusted: true };
}

const runToolInput = {
  action: MCP_TOOL_INPUT_FIELDS.action,
  payload: MCP_TOOL_INPUT_FIELDS.payload,
  wait: waitSecondsSchema.default(30).describe("Seconds to wait for the end; 0 returns the ID of the run at once"),
};

export const runTools: readonly McpTool[] = [
  defineMcpTool({
    name: "run_draft",
    title: "Run a draft",
    description: "Runs the draft of a server action and returns its result, error and console.",
    requiredOperations: ["runDraft", "listRuns"],
    changesData: true,
    input: runToolInput,
    run: (args, context) => startRun(context, "draft", args),
  }),
  defineMcpTool({
    name: "run_live",
    title: "Run the live version",
    description: "Runs the published version of a server action, with its real effects.",
    requiredOperations: ["runLive", "listRuns"],
    changesData: true,
    changesLiveVersion: true,
    input: runToolInput,
    run: (args, context) => startRun(context, "live", args),
  }),
  defineMcpTool({
    name: "wait_for_run",
    title: "Wait for a run",
    description: "Waits until the run has ended, and returns it as read_run does.",
    requiredOperations: ["listRuns"],
    changesData: false,
    input: { runId: MCP_TOOL_INPUT_FIELDS.runId, seconds: waitSecondsSchema.default(30) },
    async run({ runId, seconds }, context) {
      const run = await readRun(context, runId);
      const data = hasEnded(run) || seconds === 0 ? run : await waitForRun(context, runId, seconds);
      return { data, isUntrusted: true };
    },
  }),
  defineMcpTool({
    name: "read_run",
    title: "Read a run",
    description: "Returns a run with its state, times, payload, result or error, and the runs that it caused.",
    requiredOperations: ["listRuns"],
    changesData: false,
    input: { runId: MCP_TOOL_INPUT_FIELDS.runId },
    run: async ({ runId }, context) => ({ data: await readRun(context, runId), isUntrusted: true }),
  }),
  defineMcpTool({
    name: "read_console",
    title: "Read the console of a run",
    description: "Returns the console lines of a run in order.",
    requiredOperations: ["listRuns"],
    changesData: false,
    input: { runId: MCP_TOOL_INPUT_FIELDS.runId },
    run: async ({ runId }, context) => ({ data: await readConsole(context, runId), isUntrusted: true }),
  }),
  defineMcpTool({
    name: "list_runs",
    title: "List runs",
    description: "Lists runs, newest first. For the next runs, send `nextBefore` of the response as `before`.",
    requiredOperations: ["listRuns"],
    changesData: false,
    input: {
      actionId: z
        .int()
        .positive()
        .optional()
        .describe("ID of an action's draft or live version; lists the runs of both"),
      state: z.enum(["queued", "running", "completed", "failed", "skipped", "cancelled"]).optional(),
      search: z
        .string()
        .max(200)
        .optional()
        .describe("Text in payloads, results, error messages, console lines or hosts of requests"),
      before: z.int().positive().optional(),
      limit: MCP_TOOL_INPUT_FIELDS.limit(100, 20),
    },
    run: async (query, { callRest, appId }) => ({
      data: await callRest("GET", `${APP_V3_ROUTE}/runs`, { params: { appId }, query }),
      isUntrusted: true,
    }),
  }),
  defineMcpTool({
    name: "read_log",
    title: "Read the execution log",
    description: "Returns entries of the execution log, newest first.",
    requiredOperations: ["readLogs"],
    changesData: false,
    input: {
      actionId: z.int().positive().optional().describe("ID of the draft or of the live version that ran"),
      limit: MCP_TOOL_INPUT_FIELDS.limit(100, 20),
      offset: z.int().min(0).max(100_000).default(0),
    },
    run: async ({ actionId, ...options }, { callRest, appId }) => ({
      data: await callRest("POST", `${APP_V3_ROUTE}/actions/logs`, {
        params: { appId },
        body: { ...options, ...(actionId !== undefined && { where: { data: { taskId: actionId } } }) },
      }),
      isUntrusted: true,
    }),
  }),
  defineMcpTool({
    name: "cancel_run",
    title: "Cancel a run",
    description: "Cancels a queued or running run.",
    requiredOperations: ["cancelRun"],
    changesData: true,
    input: { runId: MCP_TOOL_INPUT_FIELDS.runId },
    run: async ({ runId }, { callRest, appId }) => ({
      data: await callRest("POST", `${APP_V3_ROUTE}/runs/:runId/cancel`, { params: { appId, runId } }),
    }),
  }),
];
