/** Whether the window is as narrow as phone.css takes for a phone's, also once it has been turned. Knows no list. */
import { useSyncExternalStore } from "react";

const narrow = matchMedia("(max-width: 700px)");

function subscribe(changed: () => void): () => void {
  narrow.addEventListener("change", changed);
  return () => narrow.removeEventListener("change", changed);
}

/** To be asked once for a whole list: the browser takes its time to answer. */
export const useNarrow = (): boolean => useSyncExternalStore(subscribe, () => narrow.matches);
