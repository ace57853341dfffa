/** Hooks that return the result of a CSS media query. They update when the window is resized or the device is turned. */
import { useCallback, useSyncExternalStore } from "react";

/** True if the media query matches. @param query CSS media query; must be the same text in each render */
export function useMediaQuery(query: string): boolean {
  const subscribe = useCallback(
    (onChange: () => void) => {
      const media = matchMedia(query);
      media.addEventListener("change", onChange);
      return () => media.removeEventListener("change", onChange);
    },
    [query],
  );
  return useSyncExternalStore(subscribe, () => matchMedia(query).matches);
}

/** True if the window is as narrow as a phone. phone.css uses the same width. */
export const useIsNarrowWindow = (): boolean => useMediaQuery("(max-width: 700px)");
