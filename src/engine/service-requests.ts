/**
 * Sends requests of pages to the service's own API over keep-alive connections, so that the browser's network is not needed. A request
 * contains only what the page's `fetch` could send, and the response only what the page could read.
 */
import { Agent, type IncomingMessage, type RequestOptions, request as send } from "node:http";

/** Methods that the API allows for pages of other origins (src/api/cors.ts). */
const ALLOWED_METHODS = ["GET", "POST", "PUT", "DELETE"];
/** The API also allows headers for files and for MCP, and `Authorization`. A page's request does not need them. */
const ALLOWED_HEADERS = [
  "auth-token",
  "content-type",
  "idempotency-key",
  "idempotency-retry",
  "if-match",
  "traceparent",
];
const REDIRECT_STATUSES = [301, 302, 303, 307, 308];
/** Header values that HTTP and `fetch` allow. They contain no line breaks. */
const HEADER_VALUE_PATTERN = /^[\t\x20-\x7e\x80-\xff]*$/;
const PART_MAX_CHARACTERS = 256 * 1024;
/** Content type of live responses, which the page gets line by line. */
const NDJSON_TYPE = "application/x-ndjson";

interface PageRequest {
  method: string;
  url: string;
  headers: Readonly<Record<string, string>>;
  body: string | null;
}

/** Returns the headers to send. @throws Error for headers that a page of another origin could not send */
function selectRequestHeaders({ headers }: PageRequest, origin: string): Record<string, string> {
  for (const [name, value] of Object.entries(headers)) {
    if (!ALLOWED_HEADERS.includes(name.toLowerCase()))
      throw new Error(`pages cannot send requests with the header ${JSON.stringify(name.slice(0, 60))}`);
    if (!HEADER_VALUE_PATTERN.test(value))
      throw new Error(`the value of the header ${name} contains characters that are not allowed`);
  }
  return { accept: "*/*", ...headers, origin };
}

/** Returns the headers that a page of this origin may read. @throws Error if the page may not read the response */
function selectReadableHeaders(response: IncomingMessage, origin: string): Record<string, string> {
  const { "access-control-allow-origin": allowedOrigin, "access-control-expose-headers": exposedHeaders = "" } =
    response.headers;
  if (allowedOrigin !== "*" && allowedOrigin !== origin) {
    throw new Error(`blocked by CORS, because the host does not allow requests from ${origin}`);
  }
  const names = [
    "content-type",
    ...String(exposedHeaders)
      .toLowerCase()
      .split(",")
      .map((name) => name.trim()),
  ];
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = response.headers[name];
      return value === undefined ? [] : [[name, String(value)]];
    }),
  );
}

async function* readTextParts(response: IncomingMessage, isLive: boolean): AsyncGenerator<string> {
  let part = "";
  for await (const text of response) {
    part += text;
    if (!isLive && part.length < PART_MAX_CHARACTERS) continue;
    yield part;
    part = "";
  }
  if (part !== "") yield part;
}

export class ServiceRequestSender {
  // Idle connections do not keep the process running. The API closes them when it stops.
  private readonly agent = new Agent({ keepAlive: true });

  /** @param base URL of the API with a slash at the end */
  constructor(readonly base: string) {}

  /** Sends a request, and resolves with the response. If the server has just closed the idle connection, repeats it, as browsers do. */
  private requestResponse(pageRequest: PageRequest, options: RequestOptions): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const request = send(pageRequest.url, options);
      request.once("response", resolve).once("error", (error: NodeJS.ErrnoException) => {
        const isStale = request.reusedSocket && error.code === "ECONNRESET" && options.signal?.aborted === false;
        if (isStale) resolve(this.requestResponse(pageRequest, { ...options, agent: false }));
        else reject(new Error(`the service could not be reached (${error.code ?? error.message})`));
      });
      request.end(pageRequest.body ?? undefined);
    });
  }

  /** Sends a page's request. @param origin origin of the page @throws Error if there is no response, or if the page may not read it */
  async send(pageRequest: PageRequest, origin: string, signal: AbortSignal) {
    if (!ALLOWED_METHODS.includes(pageRequest.method))
      throw new Error(`pages cannot send requests with the method ${pageRequest.method.slice(0, 20)}`);
    const { href } = new URL(pageRequest.url);
    if (!href.startsWith(this.base)) throw new Error("the URL is not a route of the service");
    const { method } = pageRequest;
    const headers = selectRequestHeaders(pageRequest, origin);
    const response = await this.requestResponse(
      { ...pageRequest, url: href },
      { agent: this.agent, method, headers, signal },
    );
    try {
      const status = response.statusCode!;
      if (REDIRECT_STATUSES.includes(status))
        throw new Error("the service redirected the request to another URL, and pages cannot follow this redirect");
      const headers = selectReadableHeaders(response, origin);
      const isLive = headers["content-type"]?.startsWith(NDJSON_TYPE) === true;
      return { status, headers, isLive, text: readTextParts(response.setEncoding("utf8"), isLive) };
    } catch (error) {
      response.destroy();
      throw error;
    }
  }
}

/**
 * Creates a sender for the API at `apiUrl`. Returns null for an https URL: then the browser must send the requests, because it decides
 * which certificates are trusted.
 */
export function createServiceRequestSender(apiUrl: string): ServiceRequestSender | null {
  const { protocol, origin, pathname } = new URL(apiUrl);
  if (protocol !== "http:") return null;
  let path = pathname;
  while (path.endsWith("/")) path = path.slice(0, -1);
  return new ServiceRequestSender(`${origin}${path}/`);
}
