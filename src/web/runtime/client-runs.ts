/** Runs client actions in this page; announces each run to the service and reports its end. */
import { RESULT_MAX_BYTES } from "../../limits.js";
import type { Connection } from "./connection.js";
import type { ActionScript, Execute } from "./scripts.js";

type Outcome = { result: unknown } | { error: { name: string; message: string; stack: string } };

export interface ClientRunsOptions {
  connection: Pick<Connection, "appId" | "request">;
  load(action: ActionScript): Promise<Execute>;
  /** Milliseconds (specification, Limits: client action execution time). */
  timeoutMs: number;
}

const REPORT_ATTEMPTS = 5;
const REPORT_WAIT_MS = 1_000;
const LEFT = "the page was closed or left before the run ended";
/** The service truncates longer texts to these lengths. */
const MESSAGE_CHARACTERS = 10_000;
const STACK_CHARACTERS = 50_000;

/** The part of an error that the log stores. */
function describe(thrown: unknown): { error: { name: string; message: string; stack: string } } {
  const { name, message, stack = "" } = thrown instanceof Error ? thrown : { name: "Error", message: String(thrown) };
  return { error: { name, message: message.slice(0, MESSAGE_CHARACTERS), stack: stack.slice(0, STACK_CHARACTERS) } };
}

/** The value as JSON, as the log stores it; a value that JSON cannot contain fails the run. */
function asJson(value: unknown): unknown {
  const text = JSON.stringify(value);
  if (text && new Blob([text]).size > RESULT_MAX_BYTES) {
    throw new RangeError(`the result is larger than ${RESULT_MAX_BYTES / 2 ** 20} MB`);
  }
  return text === undefined ? undefined : JSON.parse(text);
}

/** The code shares the page's thread, so it cannot be stopped; for the log and the caller the run has ended. */
function expiry(timeoutMs: number): { passed: Promise<never>; clear(): void } {
  let clear = () => {};
  const passed = new Promise<never>((_resolve, reject) => {
    const timer = setTimeout(() => {
      const expired = new Error(`the action ran longer than the limit of ${timeoutMs / 1000} seconds`);
      expired.name = "TimeoutError";
      reject(expired);
    }, timeoutMs);
    clear = () => clearTimeout(timer);
  });
  return { passed, clear };
}

/** A run that has not ended yet. */
interface OpenRun {
  action: ActionScript;
  /** Idempotency key of its announcement and its report. */
  key: string;
  started: number;
}

/** @returns `run`, which resolves when the run has ended and its report has been sent; it never rejects */
export function createClientRuns({ connection, load, timeoutMs }: ClientRunsOptions) {
  const prepared = new Map<string, Promise<Execute>>();
  const openRuns = new Set<OpenRun>();

  function prepare(action: ActionScript): Promise<Execute> {
    const key = `${action.id} ${action.integrity}`;
    const preparing = prepared.get(key) ?? load(action);
    prepared.set(key, preparing);
    preparing.catch(() => prepared.delete(key));
    return preparing;
  }

  async function execute(action: ActionScript, payload: object): Promise<Outcome> {
    const limit = expiry(timeoutMs);
    try {
      const evaluate = async () => (await prepare(action))({ payload: structuredClone(payload), settings: {} });
      return { result: asJson(await Promise.race([evaluate(), limit.passed])) };
    } catch (thrown) {
      return describe(thrown);
    } finally {
      limit.clear();
    }
  }

  /** Repeated only if no response arrived; the key prevents a second entry if the report had arrived. */
  async function report({ action: { id }, key }: OpenRun, body: object): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await send(id, "", key, body);
        return;
      } catch (error) {
        const lost = (error as { status?: string }).status === "NETWORK_ERROR";
        if (!lost || attempt === REPORT_ATTEMPTS)
          return console.warn(`svc: a run of action ${id} was not logged`, error);
        await new Promise((resolve) => setTimeout(resolve, REPORT_WAIT_MS * 2 ** attempt));
      }
    }
  }

  /** As keepalive requests, which outlive the page if they are small. */
  async function send(id: number, verb: string, key: string, body: object): Promise<void> {
    const path = `/v3/apps/${connection.appId()}/actions/${id}/clientRuns${verb}`;
    await connection.request("POST", path, body, { headers: { "Idempotency-Key": key }, keepalive: true });
  }

  // A page that is hidden for a while may come back, and its runs with it.
  globalThis.addEventListener?.("pagehide", ({ persisted }) => {
    if (persisted) return;
    const { error } = describe(Object.assign(new Error(LEFT), { name: "PageClosedError" }));
    for (const { action, key, started } of openRuns) {
      const duration = Math.round(performance.now() - started);
      // The page is closing. The service ends the run when its time limit has passed.
      send(action.id, "", key, { error, duration }).catch(() => undefined);
    }
  });

  async function run(action: ActionScript, payload: object): Promise<void> {
    const openRun: OpenRun = { action, key: crypto.randomUUID(), started: performance.now() };
    openRuns.add(openRun);
    // The report at the end repeats the data if this request is lost.
    send(action.id, "/started", openRun.key, { payload }).catch(() => undefined);
    // Sent before the code runs, which may block the thread forever.
    await new Promise((resolve) => setTimeout(resolve));
    const outcome = await execute(action, payload);
    openRuns.delete(openRun);
    await report(openRun, { payload, ...outcome, duration: Math.round(performance.now() - openRun.started) });
  }

  return { run };
}
