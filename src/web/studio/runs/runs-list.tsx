/** Table of up to 100,000 runs. Renders only the visible rows, and loads older runs when the person scrolls to them. */
// biome-ignore-all lint/a11y/useSemanticElements: browsers drop the roles of table elements that are laid out as grids
// biome-ignore-all lint/a11y/useFocusableInteractive: only the controls inside of rows and cells receive the focus
import { useVirtualizer } from "@tanstack/react-virtual";
import { type CSSProperties, memo, type ReactNode, type RefObject, useEffect, useRef, useState } from "react";
import type { RunRow } from "../shared/model.js";
import { useIsNarrowWindow } from "../shared/use-media-query.js";
import type { StudioRoute } from "../shell/studio-route.js";
import { createGridTemplate, type RunColumn } from "./run-columns.js";
import type { RunListState } from "./use-runs.js";

const ROW_HEIGHT_PIXELS = 34;
const PHONE_ROW_HEIGHT_PIXELS = 58;
/** The table loads the next page of runs if fewer rows than this are below the visible area. */
const PREFETCH_ROWS = 30;

interface RunItemProps {
  run: RunRow;
  appId: number;
  /** Filters of the list of runs, as URL parameters. Links to runs contain them, so that a run's page can link back to this list. */
  filters: StudioRoute["query"];
  cancelRun: (runId: number) => Promise<void>;
  columns: readonly RunColumn[];
  /** Index of the row in the table, 0 for the first row below the header. */
  rowIndex: number;
  topPixels: number;
  heightPixels: number;
}

/** Memoized, so that React renders a row only when its own run changes. The link on the action's name covers the whole row. */
const RunItem = memo(function RunItem({ run, rowIndex, topPixels, heightPixels, columns, ...context }: RunItemProps) {
  return (
    <div
      role="row"
      aria-rowindex={rowIndex + FIRST_RUN_ROW}
      className={`run-row ${run.state}`}
      style={{ height: heightPixels, transform: `translateY(${topPixels}px)` }}
    >
      {columns.map(({ key, className, renderCell }) => (
        <span key={key} role="cell" className={className}>
          {renderCell(run, context)}
        </span>
      ))}
    </div>
  );
});

/** Row number of the first run for screen readers. The header is row 1. */
const FIRST_RUN_ROW = 2;

interface RunsListProps {
  runList: RunListState;
  appId: number;
  filters: StudioRoute["query"];
  columns: readonly RunColumn[];
  /** Content above the table, such as filters and a chart, which scrolls together with the table. */
  children: ReactNode;
}

/** Hook that returns the current height of an element in pixels. The table uses it for the content above its first row. */
function useElementHeight(element: RefObject<HTMLElement | null>): number {
  const [height, setHeight] = useState(0);
  useEffect(() => {
    if (!element.current) return;
    const observer = new ResizeObserver(([entry]) => setHeight(entry?.borderBoxSize[0]?.blockSize ?? 0));
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [element]);
  return height;
}

export function RunsList({ runList, appId, filters, columns, children }: RunsListProps) {
  const { runs, total, hasMore, isPaused, isLoading, loadMore, cancelRun } = runList;
  const scrollBox = useRef<HTMLElement>(null);
  const aboveList = useRef<HTMLDivElement>(null);
  const scrollMargin = useElementHeight(aboveList);
  const count = runs?.length ?? 0;
  const rowPixels = useIsNarrowWindow() ? PHONE_ROW_HEIGHT_PIXELS : ROW_HEIGHT_PIXELS;
  const virtualizer = useVirtualizer({
    count,
    getScrollElement: () => scrollBox.current,
    estimateSize: () => rowPixels,
    getItemKey: (index) => runs![index]!.id,
    overscan: 6,
    scrollMargin,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: another row height makes the measured heights invalid
  useEffect(() => virtualizer.measure(), [virtualizer, rowPixels]);
  const rows = virtualizer.getVirtualItems();
  const lastRowIndex = rows.at(-1)?.index ?? -1;
  useEffect(() => {
    if (hasMore && !isPaused && !isLoading && count > 0 && lastRowIndex >= count - PREFETCH_ROWS) loadMore();
  }, [hasMore, isPaused, isLoading, count, lastRowIndex, loadMore]);
  return (
    <section
      ref={scrollBox}
      className="runs-box"
      aria-label="Runs and their chart"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by the keyboard
      tabIndex={0}
    >
      <div ref={aboveList}>{children}</div>
      {count > 0 && (
        <div
          role="table"
          style={{ "--run-columns": createGridTemplate(columns) } as CSSProperties}
          aria-label="Runs, newest first"
          aria-rowcount={total?.isExact ? Math.max(total.count, count) + 1 : -1}
        >
          <div role="rowgroup" className="run-heads-group">
            <div role="row" aria-rowindex={1} className="run-heads">
              {columns.map(({ key, heading, className }) => (
                <span key={key} role="columnheader" className={className === "took" ? className : ""}>
                  {heading}
                </span>
              ))}
            </div>
          </div>
          <div role="rowgroup" className="run-rows" style={{ height: virtualizer.getTotalSize() }}>
            {rows.map(({ index, key, start, size: heightPixels }) => (
              <RunItem
                key={key}
                run={runs![index]!}
                {...{ appId, filters, cancelRun, columns, rowIndex: index, heightPixels }}
                topPixels={start - scrollMargin}
              />
            ))}
          </div>
        </div>
      )}
    </section>
  );
}
