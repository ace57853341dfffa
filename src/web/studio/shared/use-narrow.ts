/** Media queries of the window as state, also after the window was resized or turned. */
import { useCallback, useSyncExternalStore } from "react";

/** @param query keeps its text while the component is there */
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

/** True if the window is as narrow as phone.css takes for a phone's. */
export const useNarrow = (): boolean => useMedia("(max-width: 700px)");
