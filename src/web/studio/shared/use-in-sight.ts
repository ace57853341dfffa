/** Of a row of links that scrolls, the one that is current is brought into sight. Knows no page. */
import { type RefObject, useEffect, useRef } from "react";

/** @param current what is open: each change of it is looked at */
export function useInSight(current: string): RefObject<HTMLElement | null> {
  const row = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another one is current now
  useEffect(() => {
    row.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [current]);
  return row;
}
