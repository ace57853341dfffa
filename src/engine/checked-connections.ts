/**
 * Connects the service to hosts that apps name: resolves a host name once, checks all its addresses, and connects only to a checked
 * address. Does not check trusted hosts. A NotConnectedError means that the host has not received the request.
 */
import { promises as dns, type LookupAddress } from "node:dns";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect as connectTo, isIP, type LookupFunction, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

const CONNECT_TIMEOUT_MS = 10_000;
const RESPONSE_TIMEOUT_MS = 20_000;
const BODY_MAX_BYTES = 64 * 1024;

/**
 * Error if there is no connection, so that no byte of a request was sent. `forbidden` is true if the service may not connect to the address
 * or port: a retry is useless.
 */
export class NotConnectedError extends Error {
  constructor(
    message: string,
    readonly forbidden: boolean,
    /** Error code of the failed DNS lookup, connection or TLS handshake, such as ENOTFOUND or ECONNREFUSED. */
    readonly code?: string,
  ) {
    super(message);
  }
}

interface HttpRequest {
  method: "POST" | "GET";
  headers: Record<string, string | number>;
  body: string | Buffer;
  signal?: AbortSignal | undefined;
}

export interface HttpResponse {
  status: number;
  headers: IncomingMessage["headers"];
  /** Start of the response's body, at most 64 × 1024 characters. */
  body: string;
}

/** Request for a file. `headers` are sent only to the first URL's origin. Redirects to any host are followed. */
interface DownloadRequest {
  headers?: Record<string, string>;
  maxBytes: number;
  timeoutMs: number;
  signal?: AbortSignal | undefined;
  /** Checks the first URL and the URL of each redirect. Throws for a URL that is not allowed. */
  checkUrl?: (url: URL) => void;
}

export interface Download {
  status: number;
  headers: IncomingMessage["headers"];
  body: Buffer;
}

export class ResponseTooLargeError extends Error {}

export class TooManyRedirectsError extends Error {}

export interface AddressCheckedConnections {
  connect(host: string, port: number): Promise<Socket>;
  /**
   * Sends one request. Does not follow redirects. If the response breaks off, resolves with the part of its body that has arrived.
   * @throws NotConnectedError if no byte of the request was sent; another error if there is no response
   */
  request(url: URL, request: HttpRequest): Promise<HttpResponse>;
  /**
   * Requests a file. Follows up to three redirects.
   * @throws NotConnectedError, ResponseTooLargeError, TooManyRedirectsError; errors of `checkUrl`; the abort reason if `signal` aborts, or
   * after `timeoutMs`; another error if the response is missing or incomplete
   */
  download(url: URL, request: DownloadRequest): Promise<Download>;
}

interface CheckedConnectionsOptions {
  /** Returns true if connections to this IP address are allowed. */
  mayReach: (address: string) => boolean;
  /** Hosts, as `host:port`, that are allowed even if their address is private. */
  trustedHosts?: ReadonlySet<string>;
  /** IP address of this machine from which connections are made; null lets the system choose. */
  localAddress?: string | null;
  /** Returns true if connections to this port are allowed. Without this function, all ports are allowed. */
  mayUsePort?: (port: number) => boolean;
  /** Returns all addresses of a host name. Trusted hosts use the resolver of the machine instead. */
  resolve: (hostname: string) => Promise<LookupAddress[]>;
  connectTimeoutMs?: number;
  responseTimeoutMs?: number;
}

const resolveWithSystem: CheckedConnectionsOptions["resolve"] = (hostname) =>
  dns.lookup(hostname, { all: true, verbatim: true });

const removeBrackets = (hostname: string): string => (hostname.startsWith("[") ? hostname.slice(1, -1) : hostname);

async function resolveAddresses(host: string, resolve: CheckedConnectionsOptions["resolve"]): Promise<LookupAddress[]> {
  const family = isIP(host);
  if (family !== 0) return [{ address: host, family }];
  try {
    return await resolve(host);
  } catch (error) {
    const { code = "unknown reason" } = error as NodeJS.ErrnoException;
    throw new NotConnectedError(`the IP address of the host name could not be found (${code})`, false, code);
  }
}

/** Replaces the DNS lookup of a connection by the checked addresses, so that no other address is used. */
function createPinnedLookup(addresses: LookupAddress[]): LookupFunction {
  return (_hostname, { all }, callback) => {
    if (all) callback(null, addresses);
    else callback(null, addresses[0]!.address, addresses[0]!.family);
  };
}

function waitForConnection(socket: Socket, event: "connect" | "secureConnect", limitMs: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      socket.destroy();
      const first = error instanceof AggregateError ? (error.errors[0] as NodeJS.ErrnoException) : error;
      reject(
        new NotConnectedError(`the host could not be reached (${first.code ?? first.message})`, false, first.code),
      );
    };
    const handleClose = () => fail(Object.assign(new Error(), { code: "ECONNRESET" }));
    const timer = setTimeout(() => fail(Object.assign(new Error(), { code: "ETIMEDOUT" })), limitMs);
    socket.once("error", fail).once("close", handleClose);
    socket.once(event, () => {
      clearTimeout(timer);
      socket.off("close", handleClose).off("error", fail);
      // Prevents an uncaught exception if the socket fails before the code that uses it has added listeners.
      socket.on("error", () => undefined);
      resolve(socket);
    });
  });
}

/**
 * Handles a response that switches protocols (status 101), although the request did not ask for it. Node emits only `upgrade` for this
 * response, which has no body.
 */
function handleProtocolSwitch(
  request: ReturnType<typeof httpRequest>,
  handleResponse: (head: Pick<HttpResponse, "status" | "headers">) => void,
): void {
  request.once("upgrade", ({ statusCode = 0, headers }, socket) => {
    socket.destroy();
    handleResponse({ status: statusCode, headers });
  });
}

function readResponse(request: ReturnType<typeof httpRequest>): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    handleProtocolSwitch(request, (head) => resolve({ ...head, body: "" }));
    request.on("error", reject).once("response", (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        body += chunk;
        if (body.length > BODY_MAX_BYTES) response.destroy();
      });
      // After an error in the body, the result contains the status and the part of the body that has arrived.
      response
        .on("error", () => undefined)
        .once("close", () => {
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: body.slice(0, BODY_MAX_BYTES),
          });
        });
    });
  });
}

const REDIRECTS_MAX = 3;

/** Resolves with the complete response. @throws ResponseTooLargeError if the body is larger than `maxBytes` */
function downloadBody(request: ReturnType<typeof httpRequest>, maxBytes: number): Promise<Download> {
  return new Promise((resolve, reject) => {
    handleProtocolSwitch(request, (head) => resolve({ ...head, body: Buffer.alloc(0) }));
    request.on("error", reject).once("response", (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        chunks.push(chunk);
        if (bytes > maxBytes)
          response.destroy(new ResponseTooLargeError(`the response is larger than ${maxBytes / 2 ** 20} MB`));
      });
      response.once("error", reject).once("end", () => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) });
      });
    });
  });
}

export function createAddressCheckedConnections(options: CheckedConnectionsOptions): AddressCheckedConnections {
  const { mayReach, mayUsePort, resolve, trustedHosts, localAddress = null } = options;
  const { connectTimeoutMs = CONNECT_TIMEOUT_MS, responseTimeoutMs = RESPONSE_TIMEOUT_MS } = options;

  async function connectSocket(host: string, port: number): Promise<Socket> {
    const isTrusted = trustedHosts?.has(`${removeBrackets(host)}:${port}`) === true;
    if (!isTrusted && mayUsePort?.(port) === false)
      throw new NotConnectedError(`the service does not connect to port ${port}`, true);
    const addresses = await resolveAddresses(removeBrackets(host), isTrusted ? resolveWithSystem : resolve);
    if (addresses.length === 0) throw new NotConnectedError("the host name has no IP address", false);
    if (!isTrusted && !addresses.every(({ address }) => mayReach(address))) {
      throw new NotConnectedError("the host has an IP address that is not public", true);
    }
    const localOptions = !isTrusted && localAddress !== null ? { localAddress, family: isIP(localAddress) } : {};
    const socket = connectTo({
      host: removeBrackets(host),
      port,
      lookup: createPinnedLookup(addresses),
      ...localOptions,
    });
    return waitForConnection(socket, "connect", connectTimeoutMs);
  }

  async function upgradeToTls(socket: Socket, host: string): Promise<Socket> {
    const servername = isIP(removeBrackets(host)) === 0 ? host : undefined;
    const tlsSocket = connectTls({ socket, host: removeBrackets(host), ...(servername && { servername }) });
    return waitForConnection(tlsSocket, "secureConnect", connectTimeoutMs);
  }

  async function openSocket(url: URL): Promise<Socket> {
    const isSecure = url.protocol === "https:";
    const tcpSocket = await connectSocket(url.hostname, Number(url.port) || (isSecure ? 443 : 80));
    return isSecure ? upgradeToTls(tcpSocket, url.hostname) : tcpSocket;
  }

  async function get(url: URL, headers: Record<string, string>, maxBytes: number, signal: AbortSignal) {
    const socket = await openSocket(url);
    const path = `${url.pathname}${url.search}`;
    const allHeaders = { host: url.host, connection: "close", ...headers };
    try {
      const clientRequest = httpRequest({
        method: "GET",
        path,
        headers: allHeaders,
        createConnection: () => socket,
        signal,
      });
      const answer = downloadBody(clientRequest, maxBytes);
      clientRequest.end();
      return await answer;
    } finally {
      socket.destroy();
    }
  }

  return {
    connect: connectSocket,
    async download(firstUrl, { headers = {}, maxBytes, timeoutMs, signal, checkUrl }) {
      const limitSignal = AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(signal ? [signal] : [])]);
      // A DNS lookup cannot be aborted. So after an abort, the download does not wait for the lookup any more.
      const abortion = new Promise<never>((_resolve, reject) =>
        limitSignal.addEventListener("abort", () => reject(limitSignal.reason), { once: true }),
      );
      // Prevents an unhandled rejection if the time limit ends while nothing awaits `abortion`.
      abortion.catch(() => undefined);
      let url = firstUrl;
      for (let redirects = 0; ; redirects += 1) {
        checkUrl?.(url);
        const answer = await Promise.race([
          get(url, url.origin === firstUrl.origin ? headers : {}, maxBytes, limitSignal),
          abortion,
        ]);
        const { location } = answer.headers;
        if (answer.status < 300 || answer.status > 399 || !location || !URL.canParse(location, url.href)) return answer;
        if (redirects === REDIRECTS_MAX)
          throw new TooManyRedirectsError(`the request was redirected more than ${REDIRECTS_MAX} times`);
        url = new URL(location, url);
      }
    },
    async request(url, { method, headers, body, signal }) {
      const socket = await openSocket(url);
      const clientRequest = httpRequest({
        method,
        path: `${url.pathname}${url.search}`,
        headers: { host: url.host, connection: "close", "content-length": Buffer.byteLength(body), ...headers },
        createConnection: () => socket,
        signal: AbortSignal.any([AbortSignal.timeout(responseTimeoutMs), ...(signal ? [signal] : [])]),
      });
      try {
        const answer = readResponse(clientRequest);
        clientRequest.end(body);
        return await answer;
      } finally {
        socket.destroy();
      }
    },
  };
}
