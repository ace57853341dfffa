/** Console lines of a run as they arrive. Renders only the visible ones of ten thousand lines, and scrolls to the last line. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useLayoutEffect, useRef } from "react";
import { moment } from "../shared/format.js";
import type { ConsoleLine } from "../shared/model.js";

/** Estimated height of a line in pixels, as in panels.css. A wrong estimate moves the following lines when a line is measured. */
const LINE_PIXELS = 20;
/** A person who has scrolled up further than this is reading, so new lines do not scroll the view. */
const AT_END_PIXELS = 24;

interface LineProps {
  line: ConsoleLine;
  index: number;
  start: number;
  measure: (line: HTMLElement | null) => void;
}

/** Memoized: a line renders only when its own text changes. */
const Line = memo(function Line({ line: { level, at, text }, index, start, measure }: LineProps) {
  return (
    <li ref={measure} data-index={index} className={level} style={{ transform: `translateY(${start}px)` }}>
      <time dateTime={at}>{moment(at)}</time>
      <span className="level">{level}</span>
      <span>{text}</span>
    </li>
  );
});

export function ConsoleLines({ lines }: { lines: ConsoleLine[] }) {
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  // Lines that are higher than estimated also move the end. In that case the person did not scroll.
  const byHand = useRef(false);
  const { length } = lines;
  const virtual = useVirtualizer({
    count: length,
    getScrollElement: () => box.current,
    estimateSize: () => LINE_PIXELS,
    overscan: 12,
  });
  const total = virtual.getTotalSize();
  const follow = useRef(() => {});
  follow.current = () => {
    if (atEnd.current && length > 0) virtual.scrollToIndex(length - 1, { align: "end" });
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: rendered lines change their height when they are measured
  useLayoutEffect(() => follow.current(), [length, total]);
  const isEmpty = length === 0;
  useEffect(() => {
    if (isEmpty) return;
    // The result takes a part of the height when the run ends.
    const resized = new ResizeObserver(() => follow.current());
    resized.observe(box.current!);
    return () => resized.disconnect();
  }, [isEmpty]);
  const onScroll = () => {
    const { scrollHeight, scrollTop, clientHeight } = box.current!;
    if (scrollHeight - scrollTop - clientHeight < AT_END_PIXELS) atEnd.current = true;
    else if (byHand.current) atEnd.current = false;
    byHand.current = false;
  };
  const handle = () => {
    byHand.current = true;
  };
  const hands = { onWheel: handle, onTouchMove: handle, onKeyDown: handle, onPointerDown: handle };
  if (isEmpty) return null;
  return (
    <section
      ref={box}
      className="console"
      aria-label={`Console, ${length} lines`}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by the keyboard
      tabIndex={0}
      onScroll={onScroll}
      {...hands}
    >
      <ol style={{ height: total }}>
        {virtual.getVirtualItems().map(({ index, key, start }) => (
          <Line key={key} line={lines[index]!} measure={virtual.measureElement} {...{ index, start }} />
        ))}
      </ol>
    </section>
  );
}
