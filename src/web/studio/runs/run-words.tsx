/** Texts and icons for the state, the trigger and the version of a run. */
import { formatDuration } from "../shared/format.js";
import type { RunRow } from "../shared/model.js";

const STATE_WORDS: Record<RunRow["state"], { sign: string; word: string }> = {
  queued: { sign: "…", word: "queued" },
  running: { sign: "▸", word: "running" },
  completed: { sign: "✓", word: "completed" },
  failed: { sign: "✕", word: "failed" },
  skipped: { sign: "↷", word: "skipped" },
  cancelled: { sign: "⊘", word: "cancelled" },
};

/** Texts for the trigger of a run. The original specification defines all kinds except `http`, which this service adds. */
export const TRIGGER_WORDS: Record<RunRow["trigger"], string> = {
  manual: "on demand",
  schedule: "schedule",
  log: "log event",
  analytics: "analytics",
  http: "HTTP request",
};

export const VERSION_WORDS: Record<RunRow["copy"], string> = { master: "draft", production: "live" };

export const isUnfinished = ({ state }: Pick<RunRow, "state">) => state === "queued" || state === "running";

export function RunStateLabel({ state }: Pick<RunRow, "state">) {
  const { sign, word } = STATE_WORDS[state];
  return (
    <span className={`run-state ${state}`}>
      <span aria-hidden="true">{sign}</span> {word}
    </span>
  );
}

export function VersionChip({ copy }: Pick<RunRow, "copy">) {
  return <span className={copy === "production" ? "chip live" : "chip"}>{VERSION_WORDS[copy]}</span>;
}

/** Returns the duration of the run as text, or "" if the run has not ended or never started. */
export function formatRunDuration({ startedAt, finishedAt }: Pick<RunRow, "startedAt" | "finishedAt">): string {
  if (startedAt === null || finishedAt === null) return "";
  return formatDuration(Date.parse(finishedAt) - Date.parse(startedAt));
}

/** Texts for the reason why a queued run waits. A run that waits only for a free execution slot has no such reason. */
export const WAIT_REASON_WORDS: Record<NonNullable<RunRow["waitsFor"]>, string> = {
  concurrency: "for other runs of the action to end, because the concurrency limit is reached",
  debounce: "for the end of its debounce delay; a later start replaces this run",
};

/** Returns the text of a run in a list: its result, its error message, or the reason why it was skipped or waits. */
export function describeRun({ state, reason, failure, resultPreview, tickCount, waitsFor }: RunRow): string {
  if (waitsFor) return `waits ${WAIT_REASON_WORDS[waitsFor]}`;
  if (state === "skipped") return tickCount > 1 ? `${reason}, ${tickCount} ticks` : (reason ?? "");
  return failure ?? resultPreview ?? "";
}
