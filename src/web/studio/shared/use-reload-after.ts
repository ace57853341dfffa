/** Reads again after an event, such as the end of a run. Events that arrive together cause one read. */
import { useEffect } from "react";

/**
 * @param subscribe returns a function that ends the subscription
 * @param gatherMs time from the first event to the read
 */
export function useReloadAfter(
  subscribe: (listener: () => void) => () => void,
  reload: () => unknown,
  gatherMs: number,
): void {
  useEffect(() => {
    let due: ReturnType<typeof setTimeout> | undefined;
    const unsubscribe = subscribe(() => {
      due ??= setTimeout(() => {
        due = undefined;
        // A hidden page does not read now. It reads when the person shows it again.
        if (!document.hidden) void reload();
      }, gatherMs);
    });
    return () => {
      clearTimeout(due);
      unsubscribe();
    };
  }, [subscribe, reload, gatherMs]);
}
