/** A run in words and signs, the same wherever one is named. Asks nothing. */
import { lasted } from "../shared/format.js";
import type { RunRow } from "../shared/model.js";

const WORDS: Record<RunRow["state"], { sign: string; word: string }> = {
  queued: { sign: "…", word: "queued" },
  running: { sign: "▸", word: "running" },
  completed: { sign: "✓", word: "completed" },
  failed: { sign: "✕", word: "failed" },
  skipped: { sign: "↷", word: "skipped" },
  cancelled: { sign: "⊘", word: "cancelled" },
};

export const TRIGGER_WORDS: Record<RunRow["trigger"], string> = {
  manual: "on demand",
  schedule: "schedule",
  log: "log event",
  analytics: "analytics",
  http: "HTTP request",
};

export const COPY_WORDS: Record<RunRow["copy"], string> = { master: "draft", production: "live" };

export const isUnfinished = ({ state }: Pick<RunRow, "state">) => state === "queued" || state === "running";

export function RunState({ state }: Pick<RunRow, "state">) {
  const { sign, word } = WORDS[state];
  return (
    <span className={`run-state ${state}`}>
      <span aria-hidden="true">{sign}</span> {word}
    </span>
  );
}

export function CopyChip({ copy }: Pick<RunRow, "copy">) {
  return <span className={copy === "production" ? "chip live" : "chip"}>{COPY_WORDS[copy]}</span>;
}

/** How long it ran, or has waited for, in words; nothing where it never started. */
export function tookOf({ startedAt, finishedAt }: Pick<RunRow, "startedAt" | "finishedAt">): string {
  if (startedAt === null || finishedAt === null) return "";
  return lasted(Date.parse(finishedAt) - Date.parse(startedAt));
}

/** What a run waits for, beside a place. */
export const WAIT_WORDS: Record<NonNullable<RunRow["waitsFor"]>, string> = {
  concurrency: "for others of its action to end, by the action's concurrency",
  debounce: "for quiet: a start that follows closely takes its place",
};

/** Why it came to nothing, or has not come to anything yet. */
export function gistOf({ state, reason, failure, tickCount, waitsFor }: RunRow): string {
  if (waitsFor) return `waits ${WAIT_WORDS[waitsFor]}`;
  if (state === "skipped") return tickCount > 1 ? `${reason}, ${tickCount} ticks` : (reason ?? "");
  return failure ?? "";
}
