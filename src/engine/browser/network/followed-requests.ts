/**
 * Reports each request of a run when the request starts, and when it ends with its status. Can add headers to the
 * request, such as traceparent.
 */
import type { CDPSession, Protocol } from "puppeteer";
import type { PageRun } from "../run.js";

type OnRequest = PageRun["onRequest"];

interface OpenRequest {
  end(status: number | null): void;
  status: number | null;
}

/** Maximum number of open requests that are reported. A page may have thousands that never end. */
const OPEN_REQUESTS_MAX = 500;

export class FollowedRequests {
  private onRequest: OnRequest;
  private open = new Map<string, OpenRequest>();

  /** Sets the function to which the requests of the next run are reported; undefined to report none. */
  follow(onRequest: OnRequest): void {
    this.onRequest = onRequest;
    this.open = new Map();
  }

  listen(session: CDPSession): void {
    session.on("Network.responseReceived", ({ requestId, response }) => {
      const request = this.open.get(requestId);
      if (request) request.status = response.status;
    });
    session.on("Network.loadingFinished", ({ requestId }) => this.finish(requestId));
    session.on("Network.loadingFailed", ({ requestId }) => this.finish(requestId));
  }

  /** Reports a request before it is sent. @returns the headers to send instead of the request's own; {} for no change */
  reportRequest({ networkId, request }: Protocol.Fetch.RequestPausedEvent): { headers?: Protocol.Fetch.HeaderEntry[] } {
    const { onRequest, open } = this;
    // A redirected request has already been reported, and gets no additional headers.
    if (!onRequest || networkId === undefined || open.has(networkId) || open.size >= OPEN_REQUESTS_MAX) return {};
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
