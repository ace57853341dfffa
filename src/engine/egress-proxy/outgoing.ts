/** Connects to a host within a time limit, and describes failures in words. The caller has checked the host's addresses. */
import type { LookupAddress } from "node:dns";
import { Agent, type Server } from "node:http";
import { connect as connectTo, createServer, isIP, type LookupFunction, type Socket } from "node:net";
import { RequestError } from "proxy-chain";

export interface Destination {
  hostname: string;
  port: number;
  /** Checked IP addresses of the host. The proxy connects to no other address. */
  addresses: LookupAddress[];
  localAddress: string | null;
}

const BAD_GATEWAY = 502;

/** Replaces the DNS lookup of a connection by the checked addresses, so that no other address is used. */
function createPinnedLookup(addresses: LookupAddress[]): LookupFunction {
  const [first] = addresses;
  return (_hostname, { all }, callback) => {
    if (all) callback(null, addresses);
    else callback(null, first!.address, first!.family);
  };
}

function describeFailure(error: NodeJS.ErrnoException, timeoutMs: number): string {
  // If connections to several addresses failed, reports the first failure.
  const { code = "" } = error instanceof AggregateError ? (error.errors[0] as NodeJS.ErrnoException) : error;
  switch (code) {
    case "ECONNREFUSED":
      return `the host refused the connection (${code})`;
    case "ETIMEDOUT":
      return `the host did not take the connection within ${timeoutMs / 1_000} s (${code})`;
    case "ECONNRESET":
      return `the host ended the connection at once (${code})`;
    default:
      return `the host could not be reached (${code || "unknown reason"})`;
  }
}

/** Opens a connection to one of the checked addresses. @throws RequestError with the reason why there is no connection */
export function connectWithTimeout(destination: Destination, timeoutMs: number, signal: AbortSignal): Promise<Socket> {
  const { hostname, port, addresses, localAddress } = destination;
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException) => {
      socket.destroy();
      clearTimeout(timer);
      reject(new RequestError(describeFailure(error, timeoutMs), BAD_GATEWAY));
    };
    const socket = connectTo({
      host: hostname,
      port,
      lookup: createPinnedLookup(addresses),
      ...(localAddress === null ? {} : { localAddress, family: isIP(localAddress) }),
    });
    const timer = setTimeout(() => fail(Object.assign(new Error(), { code: "ETIMEDOUT" })), timeoutMs);
    signal.addEventListener("abort", () => socket.destroy(), { once: true });
    socket.once("error", fail).once("close", () => fail(Object.assign(new Error(), { code: "ECONNRESET" })));
    socket.once("connect", () => {
      clearTimeout(timer);
      socket.removeAllListeners("error").removeAllListeners("close");
      // Prevents an uncaught exception if the socket fails before the code that uses it has added listeners.
      socket.on("error", () => {});
      resolve(socket);
    });
  });
}

/**
 * Returns an HTTP agent that sends one request over `socket`.
 * @param onMissingResponse called if the connection ends before the first byte of the response
 */
export function createSocketAgent(socket: Socket, onMissingResponse: () => void): Agent {
  const agent = new Agent({ keepAlive: false });
  agent.createConnection = () => socket;
  let isReported = false;
  const reportSilence = () => {
    if (isReported || socket.bytesRead > 0 || socket.bytesWritten === 0) return;
    isReported = true;
    onMissingResponse();
  };
  // Calls `reportSilence` before the HTTP client fails the request. At "close", the browser may already have the proxy's response.
  for (const event of ["end", "error", "close"]) socket.prependOnceListener(event, reportSilence);
  return agent;
}

/** Returns a server for the client's end of a tunnel. The server pipes each connection that it accepts to `socket`. */
export function createTunnelServer(socket: Socket): Server {
  const server = createServer((clientSocket: Socket) => {
    clientSocket.pipe(socket).pipe(clientSocket);
    clientSocket.once("close", () => socket.destroy());
    socket.once("close", () => clientSocket.destroy());
  });
  return server as Server;
}
