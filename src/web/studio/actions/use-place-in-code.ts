/**
 * Hook that returns the code position in the URL, such as one from a stack trace. It removes the position from the URL, so that the editor
 * jumps to it once.
 */
import { getRouteApi } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { PATHS } from "../shell/views.js";

export interface CodePosition {
  line: number;
  column: number;
}

const route = getRouteApi(PATHS.actions);

export function useCodePosition(): CodePosition | null {
  const navigate = route.useNavigate();
  const [at, setAt] = useState<CodePosition | null>(null);
  const { line, column = 1 } = route.useSearch();
  useEffect(() => {
    if (line === undefined) return;
    setAt({ line, column });
    void navigate({ to: ".", replace: true });
  }, [line, column, navigate]);
  return at;
}
