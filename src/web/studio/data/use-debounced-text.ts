/** Hook that returns the text of a field, delayed until the person has not typed for TYPING_PAUSE_MS. */
import { useEffect, useState } from "react";

const TYPING_PAUSE_MS = 250;

export function useDebouncedText(text: string): string {
  const [debouncedText, setDebouncedText] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setDebouncedText(text), TYPING_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return debouncedText;
}
