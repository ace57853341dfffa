/** Runs client actions in the page. Reports the start and the end of each run to the service. */
import { RESULT_MAX_BYTES } from "../../limits.js";
import type { Connection } from "./connection.js";
import { createRandomUuid } from "./random-uuid.js";
import type { ActionScript, ExecuteAction } from "./scripts.js";

type RunOutcome = { result: unknown } | { error: { name: string; message: string; stack: string } };

export interface ClientRunsOptions {
  connection: Pick<Connection, "appId" | "request">;
  loadAction(action: ActionScript): Promise<ExecuteAction>;
  timeoutMs: number;
}

const MAX_REPORT_ATTEMPTS = 5;
/** The delays before repeated reports are 2, 4, 8 and 16 times this value. */
const REPORT_DELAY_BASE_MS = 1_000;
const PAGE_CLOSED_MESSAGE = "the page was closed or left before the run ended";
/** Maximum length of an error's message in the report of a run. The service would truncate a longer one. */
const MESSAGE_MAX_CHARACTERS = 10_000;
const STACK_MAX_CHARACTERS = 50_000;

function describeError(thrown: unknown): { error: { name: string; message: string; stack: string } } {
  const { name, message, stack = "" } = thrown instanceof Error ? thrown : { name: "Error", message: String(thrown) };
  return {
    error: { name, message: message.slice(0, MESSAGE_MAX_CHARACTERS), stack: stack.slice(0, STACK_MAX_CHARACTERS) },
  };
}

/** Returns the value as JSON data for the log. @throws Error if JSON cannot represent the value, RangeError if the JSON is too large */
function toJsonValue(value: unknown): unknown {
  const text = JSON.stringify(value);
  if (text && new Blob([text]).size > RESULT_MAX_BYTES) {
    throw new RangeError(`the result is larger than ${RESULT_MAX_BYTES / 2 ** 20} MB`);
  }
  return text === undefined ? undefined : JSON.parse(text);
}

/**
 * Starts the time limit of a run. `timeout` rejects at the limit, unless `clear` was called before. Cannot stop the action's code, because
 * the page's own thread executes it.
 */
function startTimeLimit(timeoutMs: number): { timeout: Promise<never>; clear(): void } {
  let clear = () => {};
  const timeout = new Promise<never>((_resolve, reject) => {
    const timer = setTimeout(() => {
      const timeoutError = new Error(`the action ran longer than the limit of ${timeoutMs / 1000} seconds`);
      timeoutError.name = "TimeoutError";
      reject(timeoutError);
    }, timeoutMs);
    clear = () => clearTimeout(timer);
  });
  return { timeout, clear };
}

interface UnfinishedRun {
  action: ActionScript;
  /** Idempotency key of the two requests about this run: the message at its start and the report at its end. */
  idempotencyKey: string;
  startedAtMs: number;
}

/** Returns an object whose function `run` runs a client action. The promise of `run` never rejects. */
export function createClientActionRunner({ connection, loadAction, timeoutMs }: ClientRunsOptions) {
  const preparedActions = new Map<string, Promise<ExecuteAction>>();
  const unfinishedRuns = new Set<UnfinishedRun>();

  function prepareAction(action: ActionScript): Promise<ExecuteAction> {
    const key = `${action.id} ${action.integrity}`;
    const preparation = preparedActions.get(key) ?? loadAction(action);
    preparedActions.set(key, preparation);
    preparation.catch(() => preparedActions.delete(key));
    return preparation;
  }

  async function executeAction(action: ActionScript, payload: object): Promise<RunOutcome> {
    const timer = startTimeLimit(timeoutMs);
    try {
      const evaluate = async () => (await prepareAction(action))({ payload: structuredClone(payload), settings: {} });
      return { result: toJsonValue(await Promise.race([evaluate(), timer.timeout])) };
    } catch (thrown) {
      return describeError(thrown);
    } finally {
      timer.clear();
    }
  }

  /** Sends the report of a run. If no complete response arrives, repeats the request; the idempotency key prevents a second log entry. */
  async function sendReport({ action: { id }, idempotencyKey }: UnfinishedRun, body: object): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await sendClientRunRequest(id, "", idempotencyKey, body);
        return;
      } catch (error) {
        const isConnectionLost = (error as { status?: string }).status === "NETWORK_ERROR";
        if (!isConnectionLost || attempt === MAX_REPORT_ATTEMPTS)
          return console.warn(`svc: the service did not confirm the report of a run of the action ${id}`, error);
        await new Promise((resolve) => setTimeout(resolve, REPORT_DELAY_BASE_MS * 2 ** attempt));
      }
    }
  }

  /** Sends a request about a run. `keepalive` lets the browser finish small requests even when the page closes. */
  async function sendClientRunRequest(id: number, pathSuffix: string, key: string, body: object): Promise<void> {
    const path = `/v3/apps/${connection.appId()}/actions/${id}/clientRuns${pathSuffix}`;
    await connection.request("POST", path, body, { headers: { "Idempotency-Key": key }, keepalive: true });
  }

  // If `persisted` is true, the browser keeps the page in memory, and its runs may continue.
  globalThis.addEventListener?.("pagehide", ({ persisted }) => {
    if (persisted) return;
    const { error } = describeError(Object.assign(new Error(PAGE_CLOSED_MESSAGE), { name: "PageClosedError" }));
    for (const { action, idempotencyKey, startedAtMs } of unfinishedRuns) {
      const duration = Math.round(performance.now() - startedAtMs);
      // Ignores a failure, because the page is closing. Without this report, the run fails at its time limit in the service.
      sendClientRunRequest(action.id, "", idempotencyKey, { error, duration }).catch(() => undefined);
    }
  });

  async function runAction(action: ActionScript, payload: object): Promise<void> {
    const unfinishedRun: UnfinishedRun = { action, idempotencyKey: createRandomUuid(), startedAtMs: performance.now() };
    unfinishedRuns.add(unfinishedRun);
    // Ignores a failure, because the report at the end of the run also contains the payload.
    sendClientRunRequest(action.id, "/started", unfinishedRun.idempotencyKey, { payload }).catch(() => undefined);
    // Gives the browser time to send the request before the action's code runs, because that code may block the thread forever.
    await new Promise((resolve) => setTimeout(resolve));
    const outcome = await executeAction(action, payload);
    unfinishedRuns.delete(unfinishedRun);
    await sendReport(unfinishedRun, {
      payload,
      ...outcome,
      duration: Math.round(performance.now() - unfinishedRun.startedAtMs),
    });
  }

  return { run: runAction };
}
