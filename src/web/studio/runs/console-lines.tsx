/** What a run prints, as it prints it: of ten thousand lines those in sight are drawn, and the last is followed. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useLayoutEffect, useRef } from "react";
import { moment } from "../shared/format.js";
import type { ConsoleLine } from "../shared/model.js";

/** As its style makes a line that is not broken: an estimate that is wrong moves all that follows when the line is measured. */
const LINE_PIXELS = 20;
/** Who has scrolled up further than this reads there, and is left there. */
const AT_END_PIXELS = 24;

interface LineProps {
  line: ConsoleLine;
  index: number;
  start: number;
  measure: (line: HTMLElement | null) => void;
}

/** Drawn once, however often the list around it is. */
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
  // Lines that are taller than expected move the end too. The person did not scroll then.
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
  // biome-ignore lint/correctness/useExhaustiveDependencies: lines grow as they are drawn and measured
  useLayoutEffect(() => follow.current(), [length, total]);
  const isEmpty = length === 0;
  useEffect(() => {
    if (isEmpty) return;
    // The result takes room from it when the run ends.
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
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and so must be within reach of the keyboard
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
