/**
 * List of up to a hundred thousand execution log entries. It renders only the visible entries, and loads older ones when the person
 * scrolls.
 */
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useCallback, useEffect, useRef, useState } from "react";
import type { ActionsState } from "../actions/use-actions.js";
import { formatColumnTime, formatDuration, formatExactTime, formatJson } from "../shared/format.js";
import type { LogEntry } from "../shared/model.js";
import { useIsNarrowWindow } from "../shared/use-media-query.js";
import { isCancelledLogEntry, isFailedLogEntry } from "./log-entry.js";
import { TRIGGER_WORDS, VersionChip } from "./run-words.js";
import { ErrorStack, type ErrorStackProps } from "./stack.js";
import type { ExecutionLogState } from "./use-log.js";

/** Estimated height of a collapsed entry in pixels, as in the style sheet. If a rendered entry is higher, the entries below move. */
const ROW_HEIGHT_PIXELS = 32;
const PHONE_ROW_HEIGHT_PIXELS = 54;
/** The list loads the next page if fewer entries than this are below the visible area. */
const PREFETCH_ROWS = 20;

interface EntryOutcome {
  className: string;
  label: string;
}

function getEntryOutcome(entry: LogEntry): EntryOutcome {
  if (isCancelledLogEntry(entry)) return { className: "entry cancelled", label: "⊘ cancelled" };
  return isFailedLogEntry(entry)
    ? { className: "entry failed", label: "✕ failed" }
    : { className: "entry", label: "✓ completed" };
}

/** Returns the object in the log entry whose field `data` is the run's result; null if the entry contains no result. */
const getLoggedResult = ({ result }: LogEntry) => result as { data?: unknown } | null;

function EntryDetails({ entry, appId, action }: Pick<EntryProps, "entry" | "appId"> & Pick<ErrorStackProps, "action">) {
  const { payload, error, taskId, runOn } = entry;
  const result = getLoggedResult(entry);
  return (
    <div className="entry-details">
      <div>
        <h3>Payload</h3>
        <pre>{formatJson(payload)}</pre>
      </div>
      <div>
        <h3>{error ? "Error" : "Result"}</h3>
        {error && <ErrorStack error={error} appId={appId} action={action} />}
        {!error && <pre>{result ? formatJson(result.data) : "The service stores no result of a scheduled run."}</pre>}
      </div>
      <p className="hint">
        action id {taskId}, on the {runOn}
      </p>
    </div>
  );
}

/** Maximum number of characters of an entry's text in the list. The browser cuts off a longer text, but would need time for its layout. */
const EXCERPT_MAX_CHARACTERS = 300;

function createEntryExcerpt(entry: LogEntry): string {
  const { error } = entry;
  const text = error ? `${error.name}: ${error.message}` : (JSON.stringify(getLoggedResult(entry)?.data) ?? "");
  return text.slice(0, EXCERPT_MAX_CHARACTERS);
}

interface EntryProps {
  entry: LogEntry;
  appId: number;
  /** ID of the action's draft; null if the action was deleted. */
  masterId: number | null;
  actionName: string | null;
  isLive: boolean;
  rowIndex: number;
  topPixels: number;
  isOpen: boolean;
  toggleEntry: (id: number) => void;
  measureRow: (item: HTMLElement | null) => void;
}

/** Memoized, so that React renders an entry only when its own data changes. */
const EntryItem = memo(function EntryItem(props: EntryProps) {
  const { entry, appId, masterId, actionName, isLive, rowIndex, topPixels, isOpen, toggleEntry, measureRow } = props;
  const { id, createdAt, taskId, mode, duration } = entry;
  const { className, label } = getEntryOutcome(entry);
  return (
    <li
      ref={measureRow}
      data-index={rowIndex}
      className={className}
      style={{ transform: `translateY(${topPixels}px)` }}
    >
      <button type="button" aria-expanded={isOpen} onClick={() => toggleEntry(id)}>
        <span className="verdict">{label}</span>
        <time dateTime={createdAt} title={formatExactTime(createdAt)}>
          {formatColumnTime(createdAt)}
        </time>
        <b>{actionName ?? `action ${taskId}`}</b>
        <VersionChip copy={isLive ? "production" : "master"} />
        <span className="mode">{mode === "on-demand" ? TRIGGER_WORDS.manual : mode}</span>
        <span className="took">{formatDuration(duration)}</span>
        <span className="gist">{createEntryExcerpt(entry)}</span>
      </button>
      {isOpen && (
        <EntryDetails
          {...{ entry, appId }}
          action={masterId === null || actionName === null ? null : { id: masterId, name: actionName }}
        />
      )}
    </li>
  );
});

interface LogEntriesProps extends Pick<ExecutionLogState, "hasMore" | "isLoading" | "loadMore"> {
  entries: LogEntry[];
  appId: number;
  findLoggedAction: ActionsState["findLoggedAction"];
}

export function LogEntries({ entries, hasMore, isLoading, loadMore, appId, findLoggedAction }: LogEntriesProps) {
  const scrollBox = useRef<HTMLElement>(null);
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const { length } = entries;
  const rowPixels = useIsNarrowWindow() ? PHONE_ROW_HEIGHT_PIXELS : ROW_HEIGHT_PIXELS;
  const virtualizer = useVirtualizer({
    count: length,
    getScrollElement: () => scrollBox.current,
    estimateSize: () => rowPixels,
    getItemKey: (index) => entries[index]!.id,
    overscan: 6,
  });
  const rows = virtualizer.getVirtualItems();
  const lastRowIndex = rows.at(-1)?.index ?? -1;
  useEffect(() => {
    if (hasMore && !isLoading && lastRowIndex >= length - PREFETCH_ROWS) loadMore();
  }, [hasMore, isLoading, length, lastRowIndex, loadMore]);
  const toggleEntry = useCallback(
    (id: number) =>
      setOpen((old) => (old.has(id) ? new Set([...old].filter((openId) => openId !== id)) : new Set([...old, id]))),
    [],
  );
  return (
    <section
      ref={scrollBox}
      className="entries"
      aria-label="Entries, newest first"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by the keyboard
      tabIndex={0}
    >
      <ul style={{ height: virtualizer.getTotalSize() }}>
        {rows.map(({ index, key, start: topPixels }) => {
          const entry = entries[index]!;
          const owner = findLoggedAction(entry.taskId);
          return (
            <EntryItem
              key={key}
              {...{ entry, appId, rowIndex: index, topPixels, toggleEntry }}
              masterId={owner?.id ?? null}
              actionName={owner?.name ?? null}
              isLive={owner?.isLive ?? false}
              isOpen={open.has(entry.id)}
              measureRow={virtualizer.measureElement}
            />
          );
        })}
      </ul>
    </section>
  );
}
