/**
 * Hook that reads a code position from the URL, for example after a click on a position in a stack trace. It removes
 * the position from the URL, so that the editor jumps there only once.
 */
import { useEffect, useState } from "react";
import type { Navigation, StudioRoute } from "../shell/studio-route.js";

export interface CodePosition {
  line: number;
  column: number;
}

export function useCodePositionFromUrl({ query }: StudioRoute, go: Navigation["go"]): CodePosition | null {
  const [codePosition, setCodePosition] = useState<CodePosition | null>(null);
  const { line, column } = query;
  useEffect(() => {
    if (line === undefined) return;
    setCodePosition({ line: Math.max(1, Number(line) || 1), column: Math.max(1, Number(column) || 1) });
    go({ query: {} }, { replacesHistoryEntry: true });
  }, [line, column, go]);
  return codePosition;
}
