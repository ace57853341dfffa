/**
 * Reports each request of a run twice: when the request starts, and with its status when the request ends. Can add
 * headers to the request, such as traceparent.
 */
import type { CDPSession, Protocol } from "puppeteer";
import type { PageRunRequest } from "../run.js";

type OnRequest = PageRunRequest["onRequest"];

interface OpenRequest {
  reportEnd(status: number | null): void;
  status: number | null;
}

/**
 * Maximum number of unfinished requests of a run that are reported at the same time. A page may have thousands of
 * requests that never end.
 */
const OPEN_REQUESTS_MAX = 500;

export class RunRequestReporter {
  private onRequest: OnRequest;
  private open = new Map<string, OpenRequest>();

  /** Sets the function to which the requests of the next run are reported; undefined if they are not reported. */
  setListener(onRequest: OnRequest): void {
    this.onRequest = onRequest;
    this.open = new Map();
  }

  listen(session: CDPSession): void {
    session.on("Network.responseReceived", ({ requestId, response }) => {
      const request = this.open.get(requestId);
      if (request) request.status = response.status;
    });
    session.on("Network.loadingFinished", ({ requestId }) => this.endRequest(requestId));
    session.on("Network.loadingFailed", ({ requestId }) => this.endRequest(requestId));
  }

  /**
   * Reports a request before the browser sends it.
   * @returns the complete list of headers for the request; {} to keep the request's headers
   */
  reportRequest({ networkId, request }: Protocol.Fetch.RequestPausedEvent): { headers?: Protocol.Fetch.HeaderEntry[] } {
    const { onRequest, open } = this;
    // Skips a redirected request: its start has already been reported, and it gets no additional headers.
    if (!onRequest || networkId === undefined || open.has(networkId) || open.size >= OPEN_REQUESTS_MAX) return {};
    const { method, url } = request;
    const following = onRequest({ method, url });
    if (!following) return {};
    open.set(networkId, { reportEnd: following.endTrace, status: null });
    if (Object.keys(following.headers).length === 0) return {};
    const headers = { ...request.headers, ...following.headers };
    return { headers: Object.entries(headers).map(([name, value]) => ({ name, value })) };
  }

  private endRequest(id: string): void {
    const request = this.open.get(id);
    this.open.delete(id);
    request?.reportEnd(request.status);
  }
}
