/**
 * Parses large client run reports on a thread, one per sender at a time. Parsing a report on the main thread would
 * block it for 100 ms.
 */
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { createThreads } from "../../engine/threads.js";
import { ActionError, type Status } from "../../errors.js";
import { JSON_MAX_DEPTH } from "../../limits.js";
import type { LargeReport } from "../../rules/client-report.js";
import { JsonText } from "../../rules/json-text.js";

const REPORTS_AT_ONCE = 2;

const threads = createThreads<string, LargeReport>({
  module: new URL("../../rules/client-report.js", import.meta.url),
  name: "readLargeReport",
  memoryMb: 256,
  timeoutMs: 10_000,
});
const reportSemaphore = new FairSemaphore(REPORTS_AT_ONCE, 1);

const FAULT_MESSAGES: Record<NonNullable<LargeReport["fault"]>, [Status, string]> = {
  invalid: ["REQUEST_INVALID", "the body is not valid JSON"],
  deep: ["PAYLOAD_INVALID", `payload and result must not nest deeper than ${JSON_MAX_DEPTH} levels`],
  huge: ["REQUEST_INVALID", "the body must not contain a number above 1.8e308"],
};

/** Returns the report as an object whose payload and result are JSON texts. @throws REQUEST_INVALID, PAYLOAD_INVALID */
export async function readLargeReport(sender: string, text: string): Promise<Record<string, unknown>> {
  const leaveQueue = await reportSemaphore.enter(sender);
  try {
    const threadResult = await threads.call(text);
    if (!threadResult.ok)
      throw new ActionError(
        "PAYLOAD_TOO_LARGE",
        `the report is too large: parsing the report took more ${threadResult.limit} than allowed`,
      );
    const { value } = threadResult;
    if (value.fault !== null) throw new ActionError(...FAULT_MESSAGES[value.fault]);
    return { ...value.fields, ...Object.fromEntries(value.texts.map(([name, json]) => [name, new JsonText(json)])) };
  } finally {
    leaveQueue();
  }
}
