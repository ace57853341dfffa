/**
 * Runs the action.test files of a project. Each file becomes an action of a temporary app. The service builds and runs this action; this
 * file then deletes it.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { type CliApiRequestOptions, type CliApiResponse, ServiceResponseError } from "./client.js";
import { CliError, createUsageError, InterruptedError, UnrecoverableError } from "./failure.js";
import { startLocalServer } from "./local-server.js";
import { Project } from "./project.js";
import type { CliSession } from "./session.js";

const ACTIONS_ROUTE = "/v3/apps/:app/actions";
const RUNS_ROUTE = "/v3/apps/:app/runs";
const STAGES_ROUTE = "/v1/apps/:app/stages";
const POLL_MS = 250;
const END_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** Matches the console line of a failed test: `svc/test` and the index of the test, counted from 0. The stack trace follows this line. */
const FAILED_TEST_PATTERN = /^svc\/test (\d{1,6})\n/;

export interface ProjectTestResult {
  action: string;
  name: string;
  passed: boolean;
  error?: string;
}

export interface ProjectTestOptions {
  /**
   * True to run the tests in a temporary service on this machine. If false, they run in a temporary app on the server. If the token cannot
   * create this app, they run in a temporary service too, unless `isRepeated` is true.
   */
  usesTemporaryService: boolean;
  isRepeated: boolean;
}

type SendRequest = (method: string, path: string, request?: CliApiRequestOptions) => Promise<CliApiResponse>;

interface TestApp {
  sendRequest: SendRequest;
  removeApp(): Promise<void>;
}

/** Creates a preview: a stage with the app's definitions that expires after an hour. Returns its app ID. @throws ServiceResponseError */
async function createPreview({ client }: CliSession): Promise<number> {
  const body = { name: `test-${randomBytes(6).toString("hex")}`, expiresInHours: 1 };
  const { body: createdStage } = await client.sendRequest("POST", STAGES_ROUTE, { body });
  return createdStage.app.id;
}

/** Creates an app with the definitions of the project folder: a preview (a temporary stage of the app), or an app of a local service. */
async function openTestApp(
  session: CliSession,
  project: Project,
  stopSignal: AbortSignal,
  { usesTemporaryService, isRepeated }: ProjectTestOptions,
): Promise<TestApp> {
  if (usesTemporaryService) return openTestService(session, project, stopSignal);
  const { client, output } = session;
  let app: number;
  try {
    app = await createPreview(session);
  } catch (error) {
    if (!(error instanceof ServiceResponseError && error.http === 403)) throw error;
    if (isRepeated)
      throw new UnrecoverableError(
        "this token cannot create a temporary app for the tests; run svc test without --watch, or first run svc dev in an empty folder in another terminal",
      );
    output.writeNote("This token may not create a temporary app: the tests run in a service on this machine.");
    return openTestService(session, project, stopSignal);
  }
  const previewClient = session.createClientFor({ ...client.target, app });
  const token = await client.readToken();
  const send: SendRequest = (method, path, request = {}) =>
    previewClient.sendRequest(method, path, { ...request, token });
  const remove = async () => {
    await client.sendRequest("DELETE", `${STAGES_ROUTE}/${app}`);
  };
  try {
    const local = await project.readManifest();
    await send("PUT", "/v1/apps/:app/manifest", { body: local, query: { prune: true } });
  } catch (error) {
    await remove();
    throw error;
  }
  return { sendRequest: send, removeApp: remove };
}

/** Starts a service on this machine whose only app has the definitions of the project folder. */
async function openTestService(session: CliSession, project: Project, stopSignal: AbortSignal): Promise<TestApp> {
  const { client, output, environment } = session;
  output.writeNote("Starting a service …");
  const server = await startLocalServer(null, { isThrowAway: true, port: null, env: environment.env }, stopSignal);
  const localClient = session.createClientFor({ ...client.target, url: server.url, app: server.app });
  const send: SendRequest = (method, path, request = {}) =>
    localClient.sendRequest(method, path, { ...request, token: server.token });
  try {
    await send("PUT", "/v1/apps/:app/manifest", { body: await project.readManifest(), query: { prune: true } });
  } catch (error) {
    await server.stop();
    throw error;
  }
  return { sendRequest: send, removeApp: () => server.stop() };
}

/** Creates an app for the tests, calls `work`, and deletes the app. @throws InterruptedError if a process signal arrived */
async function runWithTestApp(
  session: CliSession,
  project: Project,
  options: ProjectTestOptions,
  work: (sendRequest: SendRequest, stopSignal: AbortSignal) => Promise<void>,
): Promise<void> {
  const interruptController = new AbortController();
  const stopSignal = interruptController.signal;
  const interrupt = () => interruptController.abort(new InterruptedError("interrupted"));
  // Handles signals until the app is deleted, so that a second Ctrl C does not prevent the deletion.
  for (const signal of END_SIGNALS) process.on(signal, interrupt);
  try {
    const app = await openTestApp(session, project, stopSignal, options);
    try {
      await work(app.sendRequest, stopSignal);
    } finally {
      await app.removeApp();
    }
    stopSignal.throwIfAborted();
  } catch (error) {
    if (!stopSignal.aborted || error === stopSignal.reason) throw error;
    throw new InterruptedError(`the tests were interrupted: ${(error as Error).message}`);
  } finally {
    for (const signal of END_SIGNALS) process.off(signal, interrupt);
  }
}

function createTestAction(test: string, files: Record<string, string>, config: Record<string, unknown>) {
  const { dependencies = [], environment = "server", integrationOrigins } = config;
  const entry = `import { runAll } from "svc/test";
import ${JSON.stringify(`./${test.replace(/\.[jt]s$/, "")}`)};
export const execute = async () => runAll();
`;
  return {
    name: `svc-test-${randomBytes(6).toString("hex")}`,
    source: { language: "typescript", files: { ...files, "action.ts": entry } },
    active: true,
    environment: environment === "client" ? "any" : environment,
    triggers: [{ trigger: "manual" }],
    dependencies,
    ...(integrationOrigins !== undefined && { integrationOrigins }),
  };
}

/** Returns the results of the tests. A failed test gets its stack trace from the run's console. */
async function readResults(
  sendRequest: SendRequest,
  runId: number,
  results: ProjectTestResult[],
): Promise<ProjectTestResult[]> {
  if (results.every(({ passed }) => passed)) return results;
  const { body } = await sendRequest("GET", `${RUNS_ROUTE}/${runId}/console`);
  const stacksByTest = new Map<number, string>();
  for (const { text } of body.lines as { text: string }[]) {
    const [head, testIndex] = FAILED_TEST_PATTERN.exec(text) ?? [];
    if (head !== undefined) stacksByTest.set(Number(testIndex), text.slice(head.length));
  }
  return results.map((result, index) => ({
    ...result,
    ...(stacksByTest.has(index) && { error: stacksByTest.get(index)! }),
  }));
}

/**
 * Creates an action, runs it once, and deletes it. Returns the results of its tests.
 * @throws CliError if the run does not complete; the reason of `stopSignal` if this signal aborts
 */
async function runTestAction(
  sendRequest: SendRequest,
  action: ReturnType<typeof createTestAction>,
  stopSignal: AbortSignal,
): Promise<ProjectTestResult[]> {
  const { body: createResponse } = await sendRequest("POST", ACTIONS_ROUTE, { body: action });
  try {
    stopSignal.throwIfAborted();
    const query = { copy: "draft" };
    const { body: startResponse } = await sendRequest("POST", `${ACTIONS_ROUTE}/${createResponse.action.id}/run`, {
      query,
      body: {},
    });
    for (;;) {
      const { body: runResponse } = await sendRequest("GET", `${RUNS_ROUTE}/${startResponse.runId}`);
      const { state, log } = runResponse.run;
      if (state === "completed") return readResults(sendRequest, startResponse.runId, log.data.result.data);
      if (!["queued", "running"].includes(state))
        throw new CliError(
          `the run that executed the tests ended with the state ${state} (${log?.data?.error?.message ?? "no message"})`,
        );
      stopSignal.throwIfAborted();
      await delay(POLL_MS);
    }
  } finally {
    await sendRequest("DELETE", `${ACTIONS_ROUTE}/${createResponse.action.id}`);
  }
}

/**
 * Runs the tests of the actions in `names`, or of all actions if `names` is empty.
 * @throws CliError if a test fails, if no action has a test, or if an action in `names` has none; InterruptedError after a signal
 */
export async function runProjectTests(
  session: CliSession,
  names: readonly string[],
  options: ProjectTestOptions,
): Promise<ProjectTestResult[]> {
  const project = new Project(session.target.root);
  const testFiles = (await project.listActions()).flatMap(({ name, folder }) => {
    const isChosen = names.length === 0 || names.includes(name);
    const testSource = isChosen ? project.readTest(folder) : null;
    return testSource === null ? [] : [{ name, folder, ...testSource }];
  });
  const untestedNames = names.filter((name) => !testFiles.some((file) => file.name === name));
  if (testFiles.length === 0 || untestedNames.length > 0)
    throw createUsageError(
      `${untestedNames.length > 0 ? `this project has no action ${untestedNames.join(", ")} with` : "no action of this project has"} a file action.test.ts or action.test.js`,
    );
  const results: ProjectTestResult[] = [];
  await runWithTestApp(session, project, options, async (sendRequest, stopSignal) => {
    for (const { name, folder, test, files } of testFiles) {
      stopSignal.throwIfAborted();
      const action = createTestAction(test, files, await project.readConfig(folder));
      for (const result of await runTestAction(sendRequest, action, stopSignal)) {
        results.push({ ...result, action: name });
        session.output.writeLine(
          `${result.passed ? "ok    " : "failed"} ${name}: ${result.name}`,
          result.passed ? "green" : "red",
        );
        if (result.error !== undefined) session.output.writeLine(`       ${result.error}`);
      }
    }
  });
  const failedCount = results.filter(({ passed }) => !passed).length;
  if (failedCount > 0) throw new CliError(`${failedCount} of ${results.length} tests failed`, 1, { tests: results });
  session.output.writeLine(`${results.length} tests passed`, "green");
  return results;
}
