/** Sends one request for each of several runs. Pure, so that tests can use it. */
import { afterRateLimit, type Waiting } from "../shared/after-rate-limit.js";
import { counted } from "../shared/format.js";

interface Sending extends Waiting {
  /** Past participle of the operation for the summary, such as "cancelled". */
  done: string;
  send(id: number): Promise<unknown>;
  report(progress: string): void;
}

type Outcome = "sent" | "ended" | { message: string };

async function sendOne(id: number, sending: Sending): Promise<Outcome> {
  try {
    await afterRateLimit(() => sending.send(id), sending);
    return "sent";
  } catch (error) {
    const { status, message } = sending.errorOf(error);
    return status === "RUN_NOT_CANCELLABLE" ? "ended" : { message };
  }
}

/** Sends the requests: counts runs that have ended meanwhile, waits at the rate limit, and stops at any other error. @returns a summary */
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
