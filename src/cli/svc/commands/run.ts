/** svc run runs an action and prints its result; svc logs prints the newest runs. */
import { resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type Command, Option } from "commander";
import { describeType } from "../../../rules/describe-value.js";
import { ServiceResponseError } from "../client.js";
import { CliError, ConnectionError, createUsageError, EXIT_CODES } from "../failure.js";
import { Project } from "../project.js";
import type { CliSession, CommandRunner } from "../session.js";
import { readTextFile } from "../text-file.js";

const POLL_MS = 500;
const RUN_WAIT_MAX_MS = 150_000;
const RUNS_ROUTE = "/v3/apps/:app/runs";
const RUNS_PAGE_SIZE = 100;

/** Reads the payload of a run. The option is JSON text, `@` and a file name, or `-` for standard input. */
async function readPayload(session: CliSession, input: string): Promise<object> {
  let text = input;
  if (input === "-") text = await session.readStdin();
  if (input.startsWith("@")) {
    try {
      text = readTextFile(resolve(session.environment.cwd, input.slice(1)), input.slice(1));
    } catch (error) {
      if (error instanceof CliError) throw error;
      throw createUsageError(`--payload: ${input.slice(1)} cannot be read (${(error as NodeJS.ErrnoException).code})`);
    }
  }
  let payload: unknown;
  try {
    payload = JSON.parse(text);
  } catch (error) {
    throw createUsageError(`--payload must be JSON, @file or - (${(error as Error).message})`);
  }
  if (typeof payload === "object" && payload !== null && !Array.isArray(payload)) return payload;
  throw createUsageError(`--payload must be a JSON object (got ${describeType(payload)})`);
}

/** Waits until the run has ended, and returns it. @throws CliError if the run does not end in time */
async function waitForRunEnd({ client }: CliSession, runId: number) {
  const deadline = Date.now() + RUN_WAIT_MAX_MS;
  for (;;) {
    const { body } = await client.sendRequest("GET", `${RUNS_ROUTE}/${runId}`);
    if (!["queued", "running"].includes(body.run.state)) return body.run;
    if (Date.now() > deadline)
      throw new CliError(`run ${runId} did not end within ${RUN_WAIT_MAX_MS / 1000} s; follow it with svc logs`);
    await delay(POLL_MS);
  }
}

async function printConsole({ client, output }: CliSession, runId: number): Promise<unknown[]> {
  const { body } = await client.sendRequest("GET", `${RUNS_ROUTE}/${runId}/console`);
  for (const { level, text } of body.lines) output.writeNote(`${level === "log" ? "" : `${level}: `}${text}`);
  return body.lines;
}

/**
 * Waits until an accepted run has ended, and prints its console. The run continues if this function fails.
 * @throws CliError that contains the run's ID if the service does not return the run
 */
async function readEndedRun(session: CliSession, runId: number) {
  try {
    const run = await waitForRunEnd(session, runId);
    return { run, lines: await printConsole(session, runId) };
  } catch (error) {
    if (!(error instanceof ServiceResponseError || error instanceof ConnectionError)) throw error;
    const isForbidden = error instanceof ServiceResponseError && error.http === 403;
    const advice = isForbidden ? "use a token with the scope read, or pass --no-wait" : "svc logs shows its state";
    throw new CliError(
      `run ${runId} was accepted, but its result cannot be read (${error.message}); ${advice}`,
      EXIT_CODES.failed,
      { ...error.details, runId },
    );
  }
}

/**
 * Replaces positions in a stack trace by positions in the project's file. Does so only if the file has the code of this draft or live
 * version.
 */
async function mapStackToProject(session: CliSession, name: string, actionId: number, stack: string): Promise<string> {
  try {
    const { body } = await session.client.sendRequest("GET", `/v3/apps/:app/actions/${actionId}`);
    return await new Project(session.target.root).mapStackToFiles(name, String(body.action.code), stack);
  } catch (error) {
    // Keeps the stack trace unchanged, for example if the token may run the action but not read its code.
    if (error instanceof CliError) return stack;
    throw error;
  }
}

interface RunOptions {
  payload: string;
  draft?: boolean;
  live?: boolean;
  wait: boolean;
}

async function runAction(session: CliSession, action: string, options: RunOptions): Promise<void> {
  const { client, output } = session;
  const payload = await readPayload(session, options.payload);
  const copy = options.draft ? "draft" : options.live ? "live" : null;
  const query = { by: "name", ...(copy !== null && { copy }) };
  const path = `/v3/apps/:app/actions/${encodeURIComponent(action)}`;
  const { body: startResponse } = await client.sendRequest("POST", `${path}/run`, { query, body: payload });
  const runId: number = startResponse.runId;
  if (!options.wait) {
    output.writeLine(`Run ${runId} was accepted; svc logs shows its state`);
    output.writeJson({ runId });
    return;
  }
  const { run, lines } = await readEndedRun(session, runId);
  const { result, error } = run.log?.data ?? {};
  if (run.state === "completed") {
    output.writeLine(JSON.stringify(result?.data, null, 2) ?? "(no result)");
    output.writeJson({ runId, state: run.state, result: result?.data ?? null, console: lines });
    return;
  }
  const stack = error?.stack && (await mapStackToProject(session, action, run.actionId, error.stack));
  throw new CliError(stack ?? error?.message ?? `run ${runId} ended with the state ${run.state}`, 1, {
    runId,
    state: run.state,
    console: lines,
  });
}

function printRun({ output }: CliSession, run: Record<string, unknown>): void {
  const time = String(run["finishedAt"] ?? run["startedAt"] ?? run["queuedAt"] ?? "");
  const stateStyle = run["state"] === "failed" ? "red" : run["state"] === "completed" ? "green" : "yellow";
  const name = String(run["actionName"] ?? run["actionId"] ?? "");
  output.writeLine(`${time}  ${output.applyStyle(stateStyle, String(run["state"]))}  ${name}  run ${run["id"]}`);
  if (output.isJson) output.writeJson(run);
}

async function readRuns({ client }: CliSession, limit: number): Promise<Record<string, unknown>[]> {
  const { body } = await client.sendRequest("GET", RUNS_ROUTE, { query: { limit } });
  return [...body.runs].reverse();
}

const isEnded = ({ state }: Record<string, unknown>): boolean => !["queued", "running"].includes(String(state));

interface FollowOptions {
  withConsole: boolean;
  /** The command ends when this signal aborts. If it is absent, the command runs until its process ends. */
  stopSignal?: AbortSignal;
}

/** Polls the runs, and prints each run that is new or whose state has changed since the previous poll. */
async function pollRuns(
  session: CliSession,
  previousRuns: readonly Record<string, unknown>[],
  { withConsole, stopSignal }: FollowOptions,
): Promise<void> {
  const statesById = new Map(previousRuns.map((run) => [run["id"], run["state"]]));
  while (stopSignal?.aborted !== true) {
    await delay(POLL_MS * 2);
    try {
      for (const run of await readRuns(session, RUNS_PAGE_SIZE)) {
        if (statesById.get(run["id"]) === run["state"]) continue;
        statesById.set(run["id"], run["state"]);
        printRun(session, run);
        if (withConsole && isEnded(run)) await printConsole(session, Number(run["id"]));
      }
    } catch (error) {
      // Keeps polling after temporary failures, such as a restart of the server. Other failures, such as an expired session, end the
      // command.
      const isTemporary =
        error instanceof ServiceResponseError
          ? error.http >= 500 || error.http === 429
          : error instanceof ConnectionError;
      if (!isTemporary) throw error;
    }
  }
}

export const followRuns = async (session: CliSession, options: FollowOptions): Promise<void> =>
  pollRuns(session, await readRuns(session, RUNS_PAGE_SIZE), options);

export function addRunCommand(program: Command, run: CommandRunner): void {
  program
    .command("run")
    .argument("<action>", "name of the action")
    .description("run an action and print its result")
    .option("--payload <json>", "payload: JSON, @file, or - for standard input", "{}")
    .option("--draft", "run the draft, as tokens of editors do; API tokens need the scope manage")
    .addOption(new Option("--live", "run the live version, as API tokens do").conflicts("draft"))
    .option("--no-wait", "print the ID of the run at once")
    .action((action: string, options: RunOptions) => run((session) => runAction(session, action, options)));

  program
    .command("logs")
    .description("print the newest runs")
    .option("-f, --follow", "keep running and print each change")
    .addOption(new Option("--limit <count>", "number of runs").default(20).argParser(Number))
    .action(({ follow: isFollowing, limit }: { follow?: boolean; limit: number }) =>
      run(async (session) => {
        if (!Number.isInteger(limit) || limit < 1 || limit > 1000)
          throw createUsageError(`--limit must be a whole number from 1 to 1000 (got ${limit})`);
        const recentRuns = await readRuns(session, Math.max(limit, RUNS_PAGE_SIZE));
        const runs = recentRuns.slice(-limit);
        if (session.output.isJson && isFollowing !== true) session.output.writeJson({ runs });
        else for (const run of runs) printRun(session, run);
        if (isFollowing === true) await pollRuns(session, recentRuns, { withConsole: false });
      }),
    );
}
