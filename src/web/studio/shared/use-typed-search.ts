/** Hook for the text of a search field. The page writes the text to its URL after the last key press, and the field follows the URL. */
import { useEffect, useRef, useState } from "react";

const SEARCH_DELAY_MS = 350;

/**
 * @param search search text in the URL
 * @param changeSearch writes the trimmed text to the URL
 */
export function useTypedSearch(search: string, changeSearch: (search: string) => void) {
  const [typedSearch, setTypedSearch] = useState(search);
  // Search text that this field last wrote to the URL or read from it. While the URL contains this text, the field
  // keeps the text that the person is typing.
  const urlSearch = useRef(search);
  useEffect(() => {
    if (search !== urlSearch.current) setTypedSearch(search);
    urlSearch.current = search;
  }, [search]);
  useEffect(() => {
    if (typedSearch.trim() === search) return;
    const timer = setTimeout(() => {
      urlSearch.current = typedSearch.trim();
      changeSearch(urlSearch.current);
    }, SEARCH_DELAY_MS);
    return () => clearTimeout(timer);
  }, [typedSearch, search, changeSearch]);
  return { typedSearch, setTypedSearch };
}
