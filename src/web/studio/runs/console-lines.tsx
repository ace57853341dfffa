/**
 * List of the console lines of a run, which may still be growing. It renders only the visible lines of up to ten thousand, and scrolls to
 * each new line.
 */
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useLayoutEffect, useRef } from "react";
import { formatTime } from "../shared/format.js";
import type { ConsoleLine } from "../shared/model.js";

/** Estimated height of a line in pixels, the same as in panels.css. If a rendered line is higher, the lines below it move. */
const LINE_HEIGHT_PIXELS = 20;
/** Distance from the end of the list in pixels. If the person has scrolled up further, new lines do not scroll the list. */
const END_TOLERANCE_PIXELS = 24;

interface ConsoleLineProps {
  line: ConsoleLine;
  lineIndex: number;
  topPixels: number;
  measureLine: (line: HTMLElement | null) => void;
}

/** Memoized, so that React renders a line only when its own text changes. */
const ConsoleLineRow = memo(function ConsoleLineRow({
  line: { level, at, text },
  lineIndex,
  topPixels,
  measureLine,
}: ConsoleLineProps) {
  return (
    <li ref={measureLine} data-index={lineIndex} className={level} style={{ transform: `translateY(${topPixels}px)` }}>
      <time dateTime={at}>{formatTime(at)}</time>
      <span className="level">{level}</span>
      <span>{text}</span>
    </li>
  );
});

export function ConsoleLines({ lines }: { lines: ConsoleLine[] }) {
  const scrollBox = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  // True if the person has caused the next scroll event. Other scroll events occur when lines are higher than
  // estimated; they must not stop the scrolling to new lines.
  const isManualScroll = useRef(false);
  const { length } = lines;
  const virtualizer = useVirtualizer({
    count: length,
    getScrollElement: () => scrollBox.current,
    estimateSize: () => LINE_HEIGHT_PIXELS,
    overscan: 12,
  });
  const total = virtualizer.getTotalSize();
  const scrollToEnd = useRef(() => {});
  scrollToEnd.current = () => {
    if (isAtEnd.current && length > 0) virtualizer.scrollToIndex(length - 1, { align: "end" });
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: the end of the list moves when lines are added or measured
  useLayoutEffect(() => scrollToEnd.current(), [length, total]);
  const isEmpty = length === 0;
  useEffect(() => {
    if (isEmpty) return;
    // The list becomes lower when the result of the ended run appears below it. So the list scrolls to its end again.
    const resizeObserver = new ResizeObserver(() => scrollToEnd.current());
    resizeObserver.observe(scrollBox.current!);
    return () => resizeObserver.disconnect();
  }, [isEmpty]);
  const onScroll = () => {
    const { scrollHeight, scrollTop, clientHeight } = scrollBox.current!;
    if (scrollHeight - scrollTop - clientHeight < END_TOLERANCE_PIXELS) isAtEnd.current = true;
    else if (isManualScroll.current) isAtEnd.current = false;
    isManualScroll.current = false;
  };
  const markManualScroll = () => {
    isManualScroll.current = true;
  };
  const manualScrollHandlers = {
    onWheel: markManualScroll,
    onTouchMove: markManualScroll,
    onKeyDown: markManualScroll,
    onPointerDown: markManualScroll,
  };
  if (isEmpty) return null;
  return (
    <section
      ref={scrollBox}
      className="console"
      aria-label={`Console, ${length} lines`}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by the keyboard
      tabIndex={0}
      onScroll={onScroll}
      {...manualScrollHandlers}
    >
      <ol style={{ height: total }}>
        {virtualizer.getVirtualItems().map(({ index, key, start: topPixels }) => (
          <ConsoleLineRow
            key={key}
            line={lines[index]!}
            measureLine={virtualizer.measureElement}
            {...{ lineIndex: index, topPixels }}
          />
        ))}
      </ol>
    </section>
  );
}
