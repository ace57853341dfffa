/** Hook for the text of a search whose term is in the URL. The URL follows after the last key press, and the text follows the URL. */
import { useEffect, useState } from "react";

/** Delay after the last key press before the search starts. */
const SEARCH_DELAY_MS = 350;

export function useTypedSearch(search: string, change: (search: string) => void) {
  const [typed, setTyped] = useState(search);
  useEffect(() => setTyped(search), [search]);
  useEffect(() => {
    if (typed.trim() === search) return;
    const timer = setTimeout(() => change(typed.trim()), SEARCH_DELAY_MS);
    return () => clearTimeout(timer);
  }, [typed, search, change]);
  return { typed, setTyped };
}
