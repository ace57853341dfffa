/** Hook that returns the text of a field when the person has stopped typing for TYPING_PAUSE_MS. */
import { useEffect, useState } from "react";

const TYPING_PAUSE_MS = 250;

export function useTypedText(text: string): string {
  const [typed, setTyped] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setTyped(text), TYPING_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return typed;
}
