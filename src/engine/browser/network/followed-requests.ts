/** Reports each request of a run, when it starts and with its status when it ends. Adds the headers that the receiver returns. */
import type { CDPSession, Protocol } from "puppeteer";
import type { PageRun } from "../run.js";

type OnRequest = PageRun["onRequest"];

interface OpenRequest {
  end(status: number | null): void;
  status: number | null;
}

/** Maximum number of followed requests at once, because a page may leave thousands without a response. */
const OPEN_MAX = 500;

export class FollowedRequests {
  private onRequest: OnRequest;
  private open = new Map<string, OpenRequest>();

  /** Starts to report the requests of the next run; with undefined, reports none. */
  follow(onRequest: OnRequest): void {
    this.onRequest = onRequest;
    this.open = new Map();
  }

  /** Listens to the events that end requests. */
  listen(session: CDPSession): void {
    session.on("Network.responseReceived", ({ requestId, response }) => {
      const request = this.open.get(requestId);
      if (request) request.status = response.status;
    });
    session.on("Network.loadingFinished", ({ requestId }) => this.finish(requestId));
    session.on("Network.loadingFailed", ({ requestId }) => this.finish(requestId));
  }

  /** Reports a request that may be sent. @returns changes to make in the request */
  changesOf({ networkId, request }: Protocol.Fetch.RequestPausedEvent): { headers?: Protocol.Fetch.HeaderEntry[] } {
    const { onRequest, open } = this;
    // A redirected request has been reported already, and gets no additional headers.
    if (!onRequest || networkId === undefined || open.has(networkId) || open.size >= OPEN_MAX) return {};
    const { method, url } = request;
    const following = onRequest({ method, url });
    if (!following) return {};
    open.set(networkId, { end: following.endTrace, status: null });
    if (Object.keys(following.headers).length === 0) return {};
    const headers = { ...request.headers, ...following.headers };
    return { headers: Object.entries(headers).map(([name, value]) => ({ name, value })) };
  }

  private finish(id: string): void {
    const request = this.open.get(id);
    this.open.delete(id);
    request?.end(request.status);
  }
}
