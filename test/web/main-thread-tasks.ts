/** Measures the longest task of a page's main thread in a trace of Chromium. */
import type { Page } from "puppeteer";

interface TraceEvent {
  name: string;
  ph: string;
  pid: number;
  tid: number;
  args: { name?: string };
  /** Processor time of the event's thread in microseconds. */
  tdur?: number;
}

/** Minimum number of tasks in a complete trace. Pages run hundreds of short tasks. */
const TASKS_MIN = 100;

/**
 * Returns the processor time of the longest task during `act`, in milliseconds. A `longtask` entry would include the time in which other
 * processes ran. At a load average of 26 on two cores, such an entry had 481 ms for a task of 42 ms.
 */
export async function longestTaskDuring(page: Page, act: () => Promise<unknown>): Promise<number> {
  await page.tracing.start({ categories: ["-*", "toplevel"] });
  await act();
  const trace = await page.tracing.stop();
  if (trace === undefined) throw new Error("Chromium returned no trace");
  const { traceEvents } = JSON.parse(new TextDecoder().decode(trace)) as { traceEvents: TraceEvent[] };
  const threadOf = ({ pid, tid }: TraceEvent) => `${pid}/${tid}`;
  const isMain = ({ name, args }: TraceEvent) => name === "thread_name" && args.name === "CrRendererMain";
  const mainThreads = new Set(traceEvents.filter(isMain).map(threadOf));
  const tasks = traceEvents.filter(
    (event) => event.ph === "X" && event.name.endsWith("RunTask") && mainThreads.has(threadOf(event)),
  );
  const times = tasks.map(({ tdur }) => tdur).filter((time) => time !== undefined);
  if (times.length < TASKS_MIN)
    throw new Error(`the trace has too few tasks with processor times (got ${times.length})`);
  return times.reduce((longest, time) => Math.max(longest, time), 0) / 1000;
}
