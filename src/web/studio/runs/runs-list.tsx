/** Runs in a list that may be a hundred thousand long: those in sight are drawn, older ones loaded as one comes to them. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, type ReactNode, type RefObject, useEffect, useRef, useState } from "react";
import { exact, stamp } from "../shared/format.js";
import type { RunRow } from "../shared/model.js";
import { useNarrow } from "../shared/use-narrow.js";
import { hrefOf } from "../shell/place.js";
import { mayRun, useRole } from "../shell/role.js";
import { CopyChip, gistOf, isUnfinished, RunState, TRIGGER_WORDS, tookOf } from "./run-words.js";
import type { RunsFound } from "./use-runs.js";

const ROW_PIXELS = 34;
const PHONE_ROW_PIXELS = 58;
/** So many rows before the end the next page is asked for. */
const AHEAD = 30;

interface RowProps {
  run: RunRow;
  appId: number;
  /** Without it, the run can be cancelled on its own page. */
  cancel?: (runId: number) => Promise<void>;
}

export function RunLine({ run, appId, cancel }: RowProps) {
  const isOperator = mayRun(useRole());
  const at = run.tick ?? run.queuedAt;
  return (
    <>
      <a className="run-line" href={hrefOf({ appId, view: "runs", item: String(run.id) })}>
        <span className="run-number">#{run.id}</span>
        <RunState state={run.state} />
        <time dateTime={at} title={exact(at)}>
          {stamp(at)}
        </time>
        <b>{run.actionName ?? `action ${run.actionId}`}</b>
        <CopyChip copy={run.copy} />
        <span className="mode">{TRIGGER_WORDS[run.trigger]}</span>
        <span className="took">{tookOf(run)}</span>
        <span className="gist">{gistOf(run)}</span>
      </a>
      {cancel && isOperator && isUnfinished(run) && (
        <button type="button" className="small" aria-label={`Cancel run ${run.id}`} onClick={() => void cancel(run.id)}>
          Cancel
        </button>
      )}
    </>
  );
}

interface ItemProps extends RowProps {
  start: number;
  size: number;
}

/** Drawn once, however often the list around it is. */
const RunItem = memo(function RunItem({ start, size, ...row }: ItemProps) {
  return (
    <li className={`run-row ${row.run.state}`} style={{ height: size, transform: `translateY(${start}px)` }}>
      <RunLine {...row} />
    </li>
  );
});

/** Heads of the columns, in the order of RunLine. A row says the same in words to a screen reader. */
const HEADS = ["Run", "State", "Queued", "Action", "Version", "Trigger", "Duration", "Error or reason"];

interface RunsListProps {
  found: RunsFound;
  appId: number;
  /** Scrolls away above the list. */
  children: ReactNode;
}

/** Height of what is above the list: rows begin below it. */
function useHeight(element: RefObject<HTMLElement | null>): number {
  const [height, setHeight] = useState(0);
  useEffect(() => {
    if (!element.current) return;
    const observer = new ResizeObserver(([entry]) => setHeight(entry?.borderBoxSize[0]?.blockSize ?? 0));
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [element]);
  return height;
}

export function RunsList({ found, appId, children }: RunsListProps) {
  const { runs, hasMore, isLoading, loadMore, cancel } = found;
  const box = useRef<HTMLElement>(null);
  const above = useRef<HTMLDivElement>(null);
  const scrollMargin = useHeight(above);
  const count = runs?.length ?? 0;
  const rowPixels = useNarrow() ? PHONE_ROW_PIXELS : ROW_PIXELS;
  const virtual = useVirtualizer({
    count,
    getScrollElement: () => box.current,
    estimateSize: () => rowPixels,
    getItemKey: (index) => runs![index]!.id,
    overscan: 6,
    scrollMargin,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: what was measured of rows of another height is nothing
  useEffect(() => virtual.measure(), [virtual, rowPixels]);
  const rows = virtual.getVirtualItems();
  const last = rows.at(-1)?.index ?? -1;
  useEffect(() => {
    if (hasMore && !isLoading && count > 0 && last >= count - AHEAD) loadMore();
  }, [hasMore, isLoading, count, last, loadMore]);
  return (
    <section
      ref={box}
      className="runs-box"
      aria-label="Runs, newest first"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and so must be within reach of the keyboard
      tabIndex={0}
    >
      <div ref={above}>{children}</div>
      {count > 0 && (
        <div className="run-heads" aria-hidden="true">
          {HEADS.map((head) => (
            <span key={head} className={head === "Duration" ? "took" : ""}>
              {head}
            </span>
          ))}
        </div>
      )}
      <ul style={{ height: virtual.getTotalSize() }}>
        {rows.map(({ index, key, start, size }) => (
          <RunItem key={key} run={runs![index]!} {...{ appId, cancel, size }} start={start - scrollMargin} />
        ))}
      </ul>
    </section>
  );
}
