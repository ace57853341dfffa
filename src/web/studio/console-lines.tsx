/** What a run prints, as it prints it: of ten thousand lines those in sight are drawn, and the last is followed. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef } from "react";
import { moment } from "./format.js";
import type { ConsoleLine } from "./model.js";

const LINE_PIXELS = 20;
/** Who has scrolled up further than this reads there, and is left there. */
const AT_END_PIXELS = 24;

export function ConsoleLines({ lines }: { lines: ConsoleLine[] }) {
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  // Lines that turn out higher when they are drawn leave the end behind too: that is nobody's wish.
  const byHand = useRef(false);
  const { length } = lines;
  const virtual = useVirtualizer({
    count: length,
    getScrollElement: () => box.current,
    estimateSize: () => LINE_PIXELS,
    overscan: 12,
  });
  const total = virtual.getTotalSize();
  // biome-ignore lint/correctness/useExhaustiveDependencies: lines grow as they are drawn and measured
  useEffect(() => {
    const follow = () => {
      if (atEnd.current && length > 0) virtual.scrollToIndex(length - 1, { align: "end" });
    };
    follow();
    if (!box.current) return;
    // The result takes room from it when the run ends.
    const resized = new ResizeObserver(follow);
    resized.observe(box.current);
    return () => resized.disconnect();
  }, [length, total]);
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
  if (length === 0) return null;
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
        {virtual.getVirtualItems().map(({ index, key, start }) => {
          const { level, at, text } = lines[index]!;
          return (
            <li
              key={key}
              ref={virtual.measureElement}
              data-index={index}
              className={level}
              style={{ transform: `translateY(${start}px)` }}
            >
              <time dateTime={at}>{moment(at)}</time>
              <span className="level">{level}</span>
              <span>{text}</span>
            </li>
          );
        })}
      </ol>
    </section>
  );
}
