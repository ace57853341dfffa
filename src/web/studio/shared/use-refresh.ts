/** Keeps a page up to date: it is read again on focus, after a lost connection and, if the page asks for it, at an interval. */
import { useEffect } from "react";
import type { Api } from "./api.js";

/** @param intervalMs only while the page is visible; without it, the page is not read at an interval */
export function useRefresh(api: Api, refresh: () => unknown, intervalMs?: number): void {
  useEffect(() => {
    const refreshVisible = () => {
      if (document.visibilityState === "visible") void refresh();
    };
    const timer = intervalMs === undefined ? undefined : setInterval(refreshVisible, intervalMs);
    const endReconnected = api.onReconnected(() => void refresh());
    addEventListener("focus", refreshVisible);
    document.addEventListener("visibilitychange", refreshVisible);
    return () => {
      clearInterval(timer);
      endReconnected();
      removeEventListener("focus", refreshVisible);
      document.removeEventListener("visibilitychange", refreshVisible);
    };
  }, [api, refresh, intervalMs]);
}
