/** Runs client actions in this page and reports each run. Knows no trigger: it is told what to run with what. */
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

function describe(thrown: unknown): { error: { name: string; message: string; stack: string } } {
  if (!(thrown instanceof Error)) return { error: { name: "Error", message: String(thrown), stack: "" } };
  return { error: { name: thrown.name, message: thrown.message, stack: thrown.stack ?? "" } };
}

/** What JSON makes of it: that is what the log holds, and what cannot be said in JSON fails the run. */
function asJson(value: unknown): unknown {
  const text = JSON.stringify(value);
  return text === undefined ? undefined : JSON.parse(text);
}

/** The code shares the page's thread, so it is not stopped; the run is over for the log and for the caller. */
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

/** @returns `run`, which resolves when the run has ended and its report is sent; it never rejects */
export function createClientRuns({ connection, load, timeoutMs }: ClientRunsOptions) {
  const prepared = new Map<string, Promise<Execute>>();

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

  /** Repeated only where no answer came; the key keeps a report that did arrive from becoming a second entry. */
  async function report(id: number, body: object): Promise<void> {
    const headers = { "Idempotency-Key": crypto.randomUUID() };
    const path = `/v3/apps/${connection.appId()}/actions/${id}/clientRuns`;
    for (let attempt = 1; ; attempt++) {
      try {
        await connection.request("POST", path, body, { headers });
        return;
      } catch (error) {
        const lost = (error as { status?: string }).status === "NETWORK_ERROR";
        if (!lost || attempt === REPORT_ATTEMPTS)
          return console.warn(`svc: a run of action ${id} was not logged`, error);
        await new Promise((resolve) => setTimeout(resolve, REPORT_WAIT_MS * 2 ** attempt));
      }
    }
  }

  async function run(action: ActionScript, payload: object): Promise<void> {
    const started = performance.now();
    const outcome = await execute(action, payload);
    await report(action.id, { payload, ...outcome, duration: Math.round(performance.now() - started) });
  }

  return { run };
}
