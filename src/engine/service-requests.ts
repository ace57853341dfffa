/**
 * Requests to the service's own API that are sent in the place of a page's, over connections that are kept: each with what the page's
 * `fetch` could say and nothing more, its answer with what that page could read. Knows no page and no run.
 */
import { Agent, type IncomingMessage, type RequestOptions, request as send } from "node:http";

/** What the API lets pages of other origins send (src/api/cors.ts), but for what is asked of files. */
const METHODS = ["GET", "POST", "PUT", "DELETE"];
const HEADERS = ["auth-token", "content-type", "idempotency-key", "idempotency-retry", "if-match", "traceparent"];
/** Where a browser would follow elsewhere. */
const REDIRECTS = [301, 302, 303, 307, 308];
/** No line ends: what HTTP lets a header hold, as `fetch` does. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const PART_CHARACTERS = 256 * 1024;

interface Sent {
  method: string;
  url: string;
  headers: Readonly<Record<string, string>>;
  body: string | null;
}

/** @throws Error for what a page of another origin could not send */
function headersOf({ headers }: Sent, origin: string): Record<string, string> {
  for (const [name, value] of Object.entries(headers)) {
    if (!HEADERS.includes(name.toLowerCase())) throw new Error("the request has a header that pages may not send");
    if (!HEADER_VALUE.test(value)) throw new Error("the request has a header that HTTP does not know");
  }
  return { accept: "*/*", ...headers, origin };
}

/** The headers that a page of that origin may read. @throws Error where it may read nothing */
function readable(response: IncomingMessage, origin: string): Record<string, string> {
  const { "access-control-allow-origin": allowed, "access-control-expose-headers": exposed = "" } = response.headers;
  if (allowed !== "*" && allowed !== origin) {
    throw new Error(`blocked by CORS, this host does not allow requests from ${origin}`);
  }
  const names = [
    "content-type",
    ...String(exposed)
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

async function* parts(response: IncomingMessage): AsyncGenerator<string> {
  let part = "";
  for await (const text of response) {
    part += text;
    if (part.length < PART_CHARACTERS) continue;
    yield part;
    part = "";
  }
  if (part !== "") yield part;
}

export type ServiceRequests = ReturnType<typeof createServiceRequests>;

/**
 * @param apiUrl the API's address: an origin and maybe a path
 * @returns null where it is not reached by http: what certificates a browser trusts is the browser's to say
 */
export function createServiceRequests(apiUrl: string) {
  const { protocol, origin: apiOrigin, pathname } = new URL(apiUrl);
  if (protocol !== "http:") return null;
  let path = pathname;
  while (path.endsWith("/")) path = path.slice(0, -1);
  const base = `${apiOrigin}${path}/`;
  // Kept connections keep no process: the service that is asked shuts them when it ends.
  const agent = new Agent({ keepAlive: true });

  /** Once more, as browsers do, where a kept connection had been shut meanwhile. */
  function respond(sent: Sent, options: RequestOptions): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const request = send(sent.url, options);
      request.once("response", resolve).once("error", (error: NodeJS.ErrnoException) => {
        const stale = request.reusedSocket && error.code === "ECONNRESET" && options.signal?.aborted === false;
        if (stale) resolve(respond(sent, { ...options, agent: false }));
        else reject(new Error(`the service could not be reached (${error.code ?? error.message})`));
      });
      request.end(sent.body ?? undefined);
    });
  }

  return {
    base,
    /** `origin`: of the page in whose place it is sent. @throws Error saying why there is no answer, or none that the page may read */
    async send(sent: Sent, origin: string, signal: AbortSignal) {
      if (!METHODS.includes(sent.method)) throw new Error(`pages may not ask by ${sent.method.slice(0, 20)}`);
      const { href } = new URL(sent.url);
      if (!href.startsWith(base)) throw new Error("the address is not one of the service's");
      const { method } = sent;
      const headers = headersOf(sent, origin);
      const response = await respond({ ...sent, url: href }, { agent, method, headers, signal });
      try {
        const status = response.statusCode!;
        if (REDIRECTS.includes(status)) throw new Error("the service led on to another address");
        return { status, headers: readable(response, origin), text: parts(response.setEncoding("utf8")) };
      } catch (error) {
        response.destroy();
        throw error;
      }
    },
  };
}
