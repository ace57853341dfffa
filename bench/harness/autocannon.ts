/** Sends many concurrent requests by autocannon, in a separate process. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const AUTOCANNON_FILE = fileURLToPath(new URL("../../../node_modules/autocannon/autocannon.js", import.meta.url));

export interface RequestLoad {
  url: string;
  token: string;
  callers: number;
  /** Duration of the test; not set if `amount` is. */
  seconds?: number;
  /** Total number of requests; not set if `seconds` is. */
  amount?: number;
  /** JSON body of a POST request. Without a body, the requests are GET requests. */
  body?: object;
}

/** Sends the requests and returns how many were answered per second. @throws Error if a response is not 2xx */
export async function measureRequestRate({ url, token, callers, seconds, amount, body }: RequestLoad): Promise<number> {
  const durationOptions = amount === undefined ? ["-d", String(seconds)] : ["-a", String(amount)];
  const bodyOptions = body ? ["-m", "POST", "-H", "content-type=application/json", "-b", JSON.stringify(body)] : [];
  const options = [
    "-c",
    String(callers),
    ...durationOptions,
    "-j",
    "-n",
    "-H",
    `auth-token=${token}`,
    ...bodyOptions,
    url,
  ];
  const { stdout } = await promisify(execFile)(process.execPath, [AUTOCANNON_FILE, ...options], { maxBuffer: 2 ** 24 });
  const { requests, non2xx, errors, duration } = JSON.parse(stdout);
  if (non2xx + errors > 0) throw new Error(`${url}: ${non2xx} responses were not 2xx, ${errors} requests failed`);
  return amount === undefined ? requests.average : requests.total / duration;
}
