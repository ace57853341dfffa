/** Sends one request for each of several runs. Pure; bulk-actions.tsx and the tests use it. */
import { counted } from "../shared/format.js";

/** Maximum number of requests for one run while the rate limit rejects them. */
const TRIES_MAX = 3;

interface Refusal {
  status: string;
  message: string;
  details: { retryAfter?: number };
}

interface Sending {
  /** Past participle for the summary, such as "cancelled". */
  done: string;
  send(id: number): Promise<unknown>;
  errorOf(error: unknown): Refusal;
  wait(seconds: number): Promise<unknown>;
  report(progress: string): void;
}

type Outcome = "sent" | "ended" | { message: string };

async function sendOne(id: number, { send, errorOf, wait }: Sending): Promise<Outcome> {
  for (let tries = 1; ; tries += 1) {
    try {
      await send(id);
      return "sent";
    } catch (error) {
      const { status, message, details } = errorOf(error);
      if (status === "RUN_NOT_CANCELLABLE") return "ended";
      if (status !== "RATE_LIMIT_EXCEEDED" || details.retryAfter === undefined || tries === TRIES_MAX)
        return { message };
      await wait(details.retryAfter);
    }
  }
}

/** Counts runs that ended meanwhile, waits for the rate limit, and stops at any other error. @returns a summary */
export async function sendAll(ids: readonly number[], sending: Sending): Promise<string> {
  const { done, report } = sending;
  let sent = 0;
  let ended = 0;
  const summary = () => {
    const others = ended > 0 ? `, ${counted(ended, "run", "runs")} ended already` : "";
    return `${counted(sent, "run", "runs")} ${done}${others}`;
  };
  for (const id of ids) {
    report(`${sent} of ${ids.length} ${done}…`);
    const outcome = await sendOne(id, sending);
    if (outcome === "sent") sent += 1;
    else if (outcome === "ended") ended += 1;
    else return `${summary()}, then: ${outcome.message}`;
  }
  return `${summary()}.`;
}
