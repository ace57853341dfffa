/**
 * Parses large reports of browser runs in a separate thread, one report per sender at a time. On the main thread, parsing a large report
 * would block all requests for about 100 ms.
 */
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { createThreadPool } from "../../engine/threads.js";
import { ActionError, type Status } from "../../errors.js";
import { JSON_MAX_DEPTH } from "../../limits.js";
import type * as clientReport from "../../rules/client-run-report.js";
import type { ParsedClientRunReport } from "../../rules/client-run-report.js";
import { JsonText } from "../../rules/json-text.js";

const MAX_CONCURRENT_REPORTS = 2;

const reportThreadPool = createThreadPool<string, ParsedClientRunReport>({
  module: new URL("../../rules/client-run-report.js", import.meta.url),
  name: "parseLargeClientRunReport" satisfies keyof typeof clientReport,
  memoryMb: 256,
  timeoutMs: 10_000,
});
const reportSemaphore = new FairSemaphore(MAX_CONCURRENT_REPORTS, 1);

const FAULT_MESSAGES: Record<NonNullable<ParsedClientRunReport["fault"]>, [Status, string]> = {
  invalid: ["REQUEST_INVALID", "the body is not valid JSON"],
  deep: ["PAYLOAD_INVALID", `"payload" and "result" must not be nested deeper than ${JSON_MAX_DEPTH} levels`],
  huge: ["REQUEST_INVALID", "the body must not contain a number above 1.8e308 or below -1.8e308"],
};

/**
 * Parses the JSON text of a report, except its payload and result: these stay JSON texts in the returned object.
 * @throws REQUEST_INVALID, PAYLOAD_INVALID, PAYLOAD_TOO_LARGE
 */
export async function parseLargeRunReport(sender: string, text: string): Promise<Record<string, unknown>> {
  const releaseSlot = await reportSemaphore.enter(sender);
  try {
    const threadResult = await reportThreadPool.call(text);
    if (!threadResult.ok)
      throw new ActionError(
        "PAYLOAD_TOO_LARGE",
        `the report is too large: parsing it exceeded the ${threadResult.limit} limit; send a smaller payload or result`,
      );
    const { value } = threadResult;
    if (value.fault !== null) throw new ActionError(...FAULT_MESSAGES[value.fault]);
    return { ...value.fields, ...Object.fromEntries(value.texts.map(([name, json]) => [name, new JsonText(json)])) };
  } finally {
    releaseSlot();
  }
}
