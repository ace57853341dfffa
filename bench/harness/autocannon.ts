/** Requests by autocannon, in a separate process. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const AUTOCANNON = fileURLToPath(new URL("../../../node_modules/autocannon/autocannon.js", import.meta.url));

export interface Volley {
  url: string;
  token: string;
  callers: number;
  /** The duration, */
  seconds?: number;
  /** or the total number of requests. */
  amount?: number;
  /** Sent by POST as JSON; GET without. */
  body?: object;
}

/** Requests per second. @throws Error if a response is not 2xx */
export async function fire({ url, token, callers, seconds, amount, body }: Volley): Promise<number> {
  const length = amount === undefined ? ["-d", String(seconds)] : ["-a", String(amount)];
  const sent = body ? ["-m", "POST", "-H", "content-type=application/json", "-b", JSON.stringify(body)] : [];
  const options = ["-c", String(callers), ...length, "-j", "-n", "-H", `auth-token=${token}`, ...sent, url];
  const { stdout } = await promisify(execFile)(process.execPath, [AUTOCANNON, ...options], { maxBuffer: 2 ** 24 });
  const { requests, non2xx, errors, duration } = JSON.parse(stdout);
  if (non2xx + errors > 0) throw new Error(`${url}: ${non2xx} answers were not 2xx, ${errors} calls failed`);
  return amount === undefined ? requests.average : requests.total / duration;
}
