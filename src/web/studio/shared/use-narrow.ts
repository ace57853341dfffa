/** Hooks for media queries, which update when the window is resized or turned. */
import { useCallback, useSyncExternalStore } from "react";

/** @param query must stay the same text while the component is mounted */
export function useMedia(query: string): boolean {
  const subscribe = useCallback(
    (changed: () => void) => {
      const media = matchMedia(query);
      media.addEventListener("change", changed);
      return () => media.removeEventListener("change", changed);
    },
    [query],
  );
  return useSyncExternalStore(subscribe, () => matchMedia(query).matches);
}

/** True if the window is narrow. The width is the same as in phone.css. */
export const useNarrow = (): boolean => useMedia("(max-width: 700px)");
