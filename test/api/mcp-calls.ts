/** Functions that call the tools of /mcp, valid arguments of each tool, and values that try to reach another app. */
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { expect } from "chai";

/** Maximum number of seconds for which a call waits for the end of a run. */
export const WAIT_MAX_S = 50;

const UNFINISHED_STATES = ["queued", "running"];

export interface CalledTool {
  isError: boolean;
  text: string;
}

export async function call(client: Client, name: string, args: Record<string, unknown> = {}): Promise<CalledTool> {
  const result = await client.callTool({ name, arguments: args });
  const content = result.content as { text: string }[];
  return { isError: result.isError === true, text: content.map(({ text }) => text).join("\n") };
}

/** Parses the JSON in the result of a tool. Some tools mark the JSON as untrusted data. */
// biome-ignore lint/suspicious/noExplicitAny: each tool returns another type
export function dataOf({ isError, text }: CalledTool): any {
  expect(isError, text).to.equal(false);
  const framed = /<untrusted-data id="(\w+)">\n([\s\S]*)\n<\/untrusted-data id="\1">/.exec(text);
  return JSON.parse(framed ? framed[2]! : text);
}

// biome-ignore lint/suspicious/noExplicitAny: the fields of a run depend on its kind
export async function waitForEnd(client: Client, runId: number): Promise<any> {
  for (;;) {
    const run = dataOf(await call(client, "wait_for_run", { runId, seconds: WAIT_MAX_S }));
    if (!UNFINISHED_STATES.includes(run.state)) return run;
  }
}

/** Calls a tool that runs an action, and waits for the end of the run. Returns the run and its console. */
export async function runToEnd(client: Client, tool: string, args: Record<string, unknown>) {
  const { runId } = dataOf(await call(client, tool, { ...args, wait: WAIT_MAX_S }));
  const run = await waitForEnd(client, runId);
  return { runId, run, console: dataOf(await call(client, "read_console", { runId })) };
}

/** App that the caller cannot read, and IDs of the app's resources. */
export interface OtherItems {
  appId: number;
  actionId: number;
  runId: number;
  sourceId: number;
}

export const VALID_ARGUMENTS: Record<string, Record<string, unknown>> = {
  list_actions: { search: "a", limit: 5, offset: 0 },
  read_action: { action: "greet" },
  check_code: { code: "async function execute() {}", dependencies: [] },
  diff_action: { action: "greet" },
  save_draft: { name: "greet", fields: { description: "x" }, ifUpdatedAt: "2020-01-01T00:00:00.000Z" },
  propose_publish: { action: "greet", reason: "x" },
  publish_action: { action: "greet", ifUpdatedAt: "2020-01-01T00:00:00.000Z" },
  run_draft: { action: "greet", payload: {}, wait: 0 },
  run_live: { action: "greet", payload: {}, wait: 0 },
  wait_for_run: { runId: 1, seconds: 0 },
  read_run: { runId: 1 },
  read_console: { runId: 1 },
  list_runs: { actionId: 1, state: "failed", search: "a", before: 1, limit: 5 },
  read_log: { actionId: 1, limit: 5, offset: 0 },
  cancel_run: { runId: 1 },
  list_data_sources: {},
  query_data_source: { dataSource: "Mine", where: {}, order: [], attributes: [], limit: 5, offset: 0 },
  list_settings: {},
  test_access_rule: { dataSource: "Mine", trial: {} },
  preview_schedule: { frequency: "0 4 * * *", timezone: "UTC", count: 1 },
  test_trigger: { where: { type: "x" } },
  search_docs: { query: "run", limit: 1 },
  read_docs: { page: "actions" },
  read_types: { of: "svc", part: 0 },
};

/** Returns invalid values for arguments: IDs and names of the other app, values of wrong types, and unusual texts. */
export function hostileValues({ appId, actionId, runId, sourceId }: OtherItems): unknown[] {
  const ids = [actionId, runId, sourceId, String(actionId), 2 ** 53, -1];
  const paths = [
    `../../${appId}/actions/${actionId}`,
    "%2e%2e%2f%2e%2e",
    `1?appId=${appId}`,
    "../../../.data/credentials.json",
  ];
  const texts = ["other", "Other", "__proto__", "' OR 1=1 --", "a\u0000b", "\ud800", "x".repeat(100_000)];
  const objects: unknown[] = [
    { appId },
    { __proto__: null, constructor: { prototype: {} } },
    { type: "x", appId },
    [[["x"]]],
    null,
  ];
  return [...ids, ...paths, ...texts, ...objects];
}
