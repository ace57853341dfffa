/** Tells whoever follows a run's requests of each, from its leave to its end, and sends along what they say. Judges none. */
import type { CDPSession, Protocol } from "puppeteer";
import type { PageRun } from "../run.js";

type Follow = PageRun["onRequest"];
type End = (status: number | null) => void;

/** Requests under way that are followed; a page may leave thousands without an answer. */
const OPEN_MAX = 500;

export function createFollowed() {
  let onRequest: Follow;
  let open = new Map<string, { end: End; status: number | null }>();

  function finish(id: string): void {
    const one = open.get(id);
    if (!open.delete(id)) return;
    one?.end(one.status);
  }

  return {
    /** Of the run that begins; undefined: nobody follows it. */
    follow(next: Follow): void {
      onRequest = next;
      open = new Map();
    },

    /** The events by which ends are known. */
    listen(session: CDPSession): void {
      session.on("Network.responseReceived", ({ requestId, response }) => {
        const one = open.get(requestId);
        if (one) one.status = response.status;
      });
      session.on("Network.loadingFinished", ({ requestId }) => finish(requestId));
      session.on("Network.loadingFailed", ({ requestId }) => finish(requestId));
    },

    /** What is to be changed of a request that may go on. */
    begin({ networkId, request }: Protocol.Fetch.RequestPausedEvent): { headers?: Protocol.Fetch.HeaderEntry[] } {
      // One that was sent elsewhere by an answer keeps its beginning, and nothing goes along.
      if (!onRequest || networkId === undefined || open.has(networkId) || open.size >= OPEN_MAX) return {};
      const { method, url } = request;
      const following = onRequest({ method, url });
      if (!following) return {};
      open.set(networkId, { end: following.end, status: null });
      const more = Object.entries(following.headers);
      if (more.length === 0) return {};
      const headers = { ...request.headers, ...following.headers };
      return { headers: Object.entries(headers).map(([name, value]) => ({ name, value })) };
    },
  };
}
