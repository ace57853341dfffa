/** Hook that reads data again after an event, such as the end of a run. Several events within a short time cause only one read. */
import { useEffect } from "react";

/**
 * @param subscribe calls the listener at each event; returns a function that ends the subscription
 * @param delayMs time from the first event to the read
 */
export function useReloadAfterEvents(
  subscribe: (listener: () => void) => () => void,
  reload: () => unknown,
  delayMs: number,
): void {
  useEffect(() => {
    let due: ReturnType<typeof setTimeout> | undefined;
    const unsubscribe = subscribe(() => {
      due ??= setTimeout(() => {
        due = undefined;
        // Does not read while the page is hidden. The query cache reads again when the person shows the page.
        if (!document.hidden) void reload();
      }, delayMs);
    });
    return () => {
      clearTimeout(due);
      unsubscribe();
    };
  }, [subscribe, reload, delayMs]);
}
