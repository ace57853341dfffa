/** Results of runs as their log entries store them: JSON that was checked, or a failure that says what is wrong with it. */
import { createThreads } from "../../engine/threads.js";
import { JSON_MAX_DEPTH } from "../../limits.js";
import { resultFault } from "../../rules/json-scan.js";
import type { RunOutcome } from "../records/execution-logs.js";

export function failed(name: string, message: string): RunOutcome {
  return { ok: false, error: { name, message, stack: `${name}: ${message}` } };
}

/** A longer result is read in a thread: two million `{}` would hold up the process for a tenth of a second. */
const READ_HERE_MAX_CHARACTERS = 256 * 1024;
const faults = createThreads<string, ReturnType<typeof resultFault>>({
  module: new URL("../../rules/json-scan.js", import.meta.url),
  name: "resultFault",
  memoryMb: 64,
  timeoutMs: 10_000,
});

async function faultOf(data: string): Promise<ReturnType<typeof resultFault>> {
  if (data.length <= READ_HERE_MAX_CHARACTERS) return resultFault(data);
  const called = await faults.call(data);
  if (called.ok) return called.value;
  throw new Error(`a result could not be read within its limit of ${called.limit}`);
}

/** The page's answer is a stranger's text: read here once as it lies, and refused where it could be neither stored nor sent. */
export async function completed(data: string | undefined): Promise<RunOutcome> {
  const fault = data === undefined ? null : await faultOf(data);
  if (fault === null) return { ok: true, data };
  if (fault === "invalid") return failed("ResultError", "the result of execute is no JSON");
  return failed("RangeError", `the result of execute nests deeper than ${JSON_MAX_DEPTH} levels`);
}
