/** Entries of the execution log in a list that may be a hundred thousand long: those in sight are drawn, older ones loaded as one comes to them. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState } from "react";
import { exact, lasted, moment, shown } from "./format.js";
import type { LogEntry } from "./model.js";
import { Stack } from "./stack.js";
import type { Actions, Owner } from "./use-actions.js";
import { isCancelled, isFailed, type Log } from "./use-log.js";

const ROW_PIXELS = 32;
/** So many entries before the end the next page is asked for. */
const AHEAD = 20;

interface Verdict {
  className: string;
  words: string;
}

function verdictOf(entry: LogEntry): Verdict {
  if (isCancelled(entry)) return { className: "entry cancelled", words: "⊘ cancelled" };
  return isFailed(entry)
    ? { className: "entry failed", words: "✕ failed" }
    : { className: "entry", words: "✓ completed" };
}

/** What execute returned; null where the log holds none. */
const resultOf = ({ result }: LogEntry) => result as { data?: unknown } | null;

function Details({ entry, appId, owner }: { entry: LogEntry; appId: number; owner: Owner | null }) {
  const { payload, error, taskId, runOn } = entry;
  const result = resultOf(entry);
  return (
    <div className="entry-details">
      <div>
        <h4>Payload</h4>
        <pre>{shown(payload)}</pre>
      </div>
      <div>
        <h4>{error ? "Error" : "Result"}</h4>
        {error && <Stack error={error} appId={appId} action={owner} />}
        {!error && <pre>{result ? shown(result.data) : "A scheduled run keeps no result."}</pre>}
      </div>
      <p className="hint">
        action id {taskId}, on the {runOn}
      </p>
    </div>
  );
}

interface EntryProps {
  entry: LogEntry;
  appId: number;
  whose: Actions["whose"];
  isOpen: boolean;
  toggle: () => void;
}

function Entry({ entry, appId, whose, isOpen, toggle }: EntryProps) {
  const { error, createdAt, taskId, mode, duration } = entry;
  const owner = whose(taskId);
  const text = error ? `${error.name}: ${error.message}` : (JSON.stringify(resultOf(entry)?.data) ?? "");
  return (
    <>
      <button type="button" aria-expanded={isOpen} onClick={toggle}>
        <span className="verdict">{verdictOf(entry).words}</span>
        <time dateTime={createdAt} title={exact(createdAt)}>
          {moment(createdAt)}
        </time>
        <b>{owner?.name ?? `action ${taskId}`}</b>
        <span className={owner?.live ? "chip live" : "chip"}>{owner?.live ? "live" : "master"}</span>
        <span className="mode">{mode}</span>
        <span className="took">{lasted(duration)}</span>
        <span className="gist">{text}</span>
      </button>
      {isOpen && <Details {...{ entry, appId, owner }} />}
    </>
  );
}

interface LogEntriesProps extends Pick<Log, "more" | "isLoading" | "loadMore"> {
  entries: LogEntry[];
  appId: number;
  whose: Actions["whose"];
}

export function LogEntries({ entries, more, isLoading, loadMore, appId, whose }: LogEntriesProps) {
  const box = useRef<HTMLElement>(null);
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const { length } = entries;
  const virtual = useVirtualizer({
    count: length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_PIXELS,
    getItemKey: (index) => entries[index]!.id,
    overscan: 12,
  });
  const rows = virtual.getVirtualItems();
  const last = rows.at(-1)?.index ?? -1;
  useEffect(() => {
    if (more && !isLoading && last >= length - AHEAD) loadMore();
  }, [more, isLoading, length, last, loadMore]);
  const toggle = (id: number) =>
    setOpen((old) => (old.has(id) ? new Set([...old].filter((one) => one !== id)) : new Set([...old, id])));
  return (
    <section
      ref={box}
      className="entries"
      aria-label="Entries, newest first"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and so must be within reach of the keyboard
      tabIndex={0}
    >
      <ul style={{ height: virtual.getTotalSize() }}>
        {rows.map(({ index, key, start }) => {
          const entry = entries[index]!;
          return (
            <li
              key={key}
              ref={virtual.measureElement}
              data-index={index}
              className={verdictOf(entry).className}
              style={{ transform: `translateY(${start}px)` }}
            >
              <Entry {...{ entry, appId, whose }} isOpen={open.has(entry.id)} toggle={() => toggle(entry.id)} />
            </li>
          );
        })}
      </ul>
    </section>
  );
}
