/** Hook that reads data again after an event, such as the end of a run. Several events within a short time cause only one read. */
import { useEffect } from "react";

/**
 * @param subscribe calls the listener at each event; returns a function that ends the subscription
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
        // A hidden page does not read. The query cache reads again when the person shows the page.
        if (!document.hidden) void reload();
      }, gatherMs);
    });
    return () => {
      clearTimeout(due);
      unsubscribe();
    };
  }, [subscribe, reload, gatherMs]);
}
