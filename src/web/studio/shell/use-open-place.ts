/** Hook for the page that the URL names. */
import { useMatches } from "@tanstack/react-router";
import type { View } from "./views.js";

export interface OpenPlace {
  view: View;
  /** The open item of the page; undefined if the URL names none. */
  item: number | string | undefined;
  search: object;
}

export function useOpenPlace(): OpenPlace & { appId: number | undefined } {
  const open = useMatches().at(-1);
  const { appId, item } = (open?.params ?? {}) as { appId?: number; item?: number | string };
  return { appId, view: open?.staticData.view ?? "home", item, search: open?.search ?? {} };
}
