/** Hook that returns the text of a field when the person has stopped typing for TYPED_MS. */
import { useEffect, useState } from "react";

const TYPED_MS = 250;

export function useTyped(text: string): string {
  const [typed, setTyped] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setTyped(text), TYPED_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return typed;
}
