/**
 * Forward proxy through which a browser reaches the network. It resolves a host name once, checks all addresses of the name, and connects
 * only to a checked address. Each client has its own proxy port. A callback receives the contacted hosts.
 */
import { promises as dns, type LookupAddress } from "node:dns";
import { isIP, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import ipaddr from "ipaddr.js";
import { type PrepareRequestFunctionOpts, type PrepareRequestFunctionResult, RequestError, Server } from "proxy-chain";
import {
  connectWithTimeout,
  createSocketAgent,
  createTunnelServer,
  type Destination,
} from "./egress-proxy/outgoing.js";
import { findPeerUid } from "./egress-proxy/socket-owner.js";

const LOOPBACK_ADDRESS = "127.0.0.1";
const WEB_PORTS: readonly number[] = [80, 443];
const CONNECT_TIMEOUT_MS = 10_000;
/** Range of the assigned global IPv6 addresses. ipaddr.js also calls unassigned addresses outside of this range "unicast". */
const GLOBAL_UNICAST_V6 = ipaddr.parseCIDR("2000::/3") as [ipaddr.IPv6, number];

export interface EgressProxyOptions {
  /** True allows all addresses and ports: only for tests and local development. */
  allowPrivateNetwork: boolean;
  /**
   * Returns the private endpoints that runs may contact: IP addresses by `host:port`. This is a function, because the service knows its own
   * port only after its start.
   */
  endpoints?: () => ReadonlyMap<string, string>;
  /** IP address of this machine from which connections are made; null lets the system choose. */
  localAddress?: string | null;
  ports?: readonly number[];
  /** IP address on which proxy ports listen; default 127.0.0.1. */
  host?: string;
  /** True if proxy ports accept connections from this IP address. Called for each connection. By default, all are accepted. */
  acceptsAddress?: (peer: string) => boolean;
  /**
   * True if proxy ports accept local processes with this user ID. Without this function, or if the system does not report the ID, all
   * processes are accepted.
   */
  acceptsUid?: (uid: number) => boolean;
  connectTimeoutMs?: number;
  /** Returns all addresses of a host name; default: the machine's resolver. */
  resolve?: (hostname: string) => Promise<LookupAddress[]>;
}

/** Functions that the proxy port calls during a run. Each `host` argument has the format `host:port`. */
interface EgressProxyCallbacks {
  onHost(host: string): void;
  /** Called if the proxy rejects a host, or gets no connection or response from it. `reason` is text for the author of the action. */
  onRejected?(host: string, reason: string): void;
  onConnected?(host: string): void;
  /** Called before the proxy resolves the host name. If the result is false, the proxy rejects the connection. */
  mayConnect?(host: string): Promise<boolean>;
}

export interface EgressProxyPort {
  readonly proxyServer: string;
  /** Opens the proxy port for a run. Before this call, the port rejects requests. */
  startRun(callbacks: EgressProxyCallbacks): void;
  /** Closes the proxy port: it rejects requests from now on. If it has received a request, all its connections end before this returns. */
  endRun(): void;
  /** True if the proxy port has received a request since `startRun`. */
  wasUsed(): boolean;
  /** True if the proxy port has received a request after `endRun`. */
  wasUsedLate(): boolean;
  close(): void;
}

export interface EgressProxy {
  openProxyPort(): Promise<EgressProxyPort>;
  close(): void;
}

/**
 * False for private, loopback, link-local, shared, multicast and reserved addresses, for IPv6 addresses that embed an IPv4 address, and
 * for addresses of this machine.
 */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 0 || address.includes("%")) return false;
  const parsed = ipaddr.process(address);
  if (parsed.range() !== "unicast") return false;
  if (parsed instanceof ipaddr.IPv6 && !parsed.match(GLOBAL_UNICAST_V6)) return false;
  const localAddresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return !localAddresses.some((localAddress) => ipaddr.process(localAddress.address).toString() === parsed.toString());
}

function removeBrackets(hostname: string): string {
  return hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
}

async function resolveAddresses(hostname: string, options: EgressProxyOptions): Promise<LookupAddress[]> {
  const family = isIP(hostname);
  if (family !== 0) return [{ address: hostname, family }];
  const resolve = options.resolve ?? ((name: string) => dns.lookup(name, { all: true, verbatim: true }));
  try {
    return await resolve(hostname);
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    const isUnknown = ["ENOTFOUND", "ENODATA"].includes(code);
    throw new RequestError(
      `${isUnknown ? "the host name does not exist" : "the IP address of the host name could not be found"} (${code})`,
      502,
    );
  }
}

/** Resolves a host name that runs may reach. @throws RequestError 403 or 502, before any connection is made */
async function resolveDestination(hostname: string, port: number, options: EgressProxyOptions): Promise<Destination> {
  const endpoint = options.endpoints?.().get(`${hostname}:${port}`);
  if (endpoint !== undefined) {
    return { hostname, port, addresses: [{ address: endpoint, family: isIP(endpoint) }], localAddress: null };
  }
  const { allowPrivateNetwork, ports = WEB_PORTS, localAddress = null } = options;
  if (!allowPrivateNetwork && !ports.includes(port))
    throw new RequestError(
      `port ${port} is not allowed: runs can connect only to the ports ${ports.join(" and ")}`,
      403,
    );
  const resolvedAddresses = await resolveAddresses(hostname, options);
  if (!allowPrivateNetwork && !resolvedAddresses.every(({ address }) => isPublicAddress(address))) {
    throw new RequestError(`${hostname} is not a public address: runs can connect only to public addresses`, 403);
  }
  const addresses = resolvedAddresses.filter(({ family }) => localAddress === null || family === isIP(localAddress));
  if (addresses.length === 0) {
    const addressType = localAddress === null ? "IP" : `IPv${isIP(localAddress)}`;
    throw new RequestError(`${hostname} has no ${addressType} address`, 502);
  }
  return { hostname, port, addresses, localAddress };
}

const createRunEndedError = () => new RequestError("the run has ended", 403);
/** Created only once, because creating an error takes most of the time at the end of a run. */
const RUN_ENDED_ERROR = createRunEndedError();

class ProxyPort implements EgressProxyPort {
  private callbacks: EgressProxyCallbacks | null = null;
  private hosts = new Set<string>();
  private hasReceivedRequest = false;
  private hasReceivedLateRequest = false;
  private readonly checkedSockets = new WeakSet<Socket>();
  private closed = false;
  private abortController = new AbortController();
  private readonly server: Server;

  constructor(
    private readonly options: EgressProxyOptions,
    private readonly onClose: (proxyPort: ProxyPort) => void,
  ) {
    const { host = LOOPBACK_ADDRESS, acceptsAddress } = options;
    const prepareRequestFunction = (request: PrepareRequestFunctionOpts) => this.prepareRequest(request);
    this.server = new Server({ host, port: 0, prepareRequestFunction });
    // Runs before the listener of the proxy library, so that the proxy reads no byte of an unauthorized client.
    this.server.server.prependListener("connection", (socket: Socket) => {
      const peer = socket.remoteAddress ?? "";
      if (acceptsAddress?.(ipaddr.isValid(peer) ? ipaddr.process(peer).toString() : peer) === false) socket.destroy();
    });
  }

  listen(): Promise<void> {
    return this.server.listen();
  }

  get proxyServer(): string {
    const { host = LOOPBACK_ADDRESS } = this.options;
    return `http://${isIP(host) === 6 ? `[${host}]` : host}:${this.server.port}`;
  }

  /** Checks the user ID of the client's process. @throws RequestError if `acceptsUid` rejects this user ID */
  private async checkClient(socket: Socket): Promise<void> {
    const { acceptsUid } = this.options;
    if (!acceptsUid || this.checkedSockets.has(socket)) return;
    const uid = await findPeerUid(socket);
    if (uid !== null && !acceptsUid(uid))
      throw new RequestError(
        "this proxy accepts only connections from processes of the system user that runs the browser",
        403,
      );
    this.checkedSockets.add(socket);
  }

  private async prepareRequest(options: PrepareRequestFunctionOpts): Promise<PrepareRequestFunctionResult> {
    const { port, isHttp, request } = options;
    const { callbacks } = this;
    await this.checkClient(request.socket);
    this.hasReceivedRequest = true;
    const host = removeBrackets(options.hostname);
    if (callbacks === null) {
      this.hasReceivedLateRequest = true;
      throw createRunEndedError();
    }
    try {
      const socket = await this.openAllowedConnection(callbacks, host, port);
      if (!isHttp) return { customConnectServer: createTunnelServer(socket) };
      const reportMissingResponse = () =>
        callbacks.onRejected?.(`${host}:${port}`, "the host closed the connection without an answer");
      return { httpAgent: createSocketAgent(socket, reportMissingResponse) };
    } catch (error) {
      callbacks.onRejected?.(`${host}:${port}`, (error as Error).message);
      throw error;
    }
  }

  /** Opens a connection to a host if the run may connect to it. @throws RequestError */
  private async openAllowedConnection(callbacks: EgressProxyCallbacks, host: string, port: number): Promise<Socket> {
    const name = `${host}:${port}`;
    if ((await callbacks.mayConnect?.(name)) === false)
      throw new RequestError("the run is not allowed to connect to this host", 403);
    const destination = await resolveDestination(host, port, this.options);
    if (callbacks !== this.callbacks || this.closed) throw createRunEndedError();
    if (!this.hosts.has(name)) callbacks.onHost(name);
    this.hosts.add(name);
    const { connectTimeoutMs = CONNECT_TIMEOUT_MS } = this.options;
    const socket = await connectWithTimeout(destination, connectTimeoutMs, this.abortController.signal);
    if (callbacks !== this.callbacks) {
      socket.destroy();
      throw createRunEndedError();
    }
    callbacks.onConnected?.(name);
    return socket;
  }

  startRun(callbacks: EgressProxyCallbacks): void {
    this.endRun();
    this.hasReceivedRequest = false;
    this.hasReceivedLateRequest = false;
    this.hosts = new Set();
    this.callbacks = callbacks;
  }

  endRun(): void {
    this.callbacks = null;
    if (!this.hasReceivedRequest) return;
    this.abortController.abort(RUN_ENDED_ERROR);
    this.abortController = new AbortController();
    this.server.closeConnections();
  }

  wasUsed(): boolean {
    return this.hasReceivedRequest;
  }

  wasUsedLate(): boolean {
    return this.hasReceivedLateRequest;
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.endRun();
    // Ignores the error, which means that the server is already closed.
    this.server.close(true).catch(() => {});
    this.onClose(this);
  }
}

export function createEgressProxy(options: EgressProxyOptions): EgressProxy {
  const proxyPorts = new Set<ProxyPort>();
  return {
    async openProxyPort() {
      const proxyPort = new ProxyPort(options, (closed) => proxyPorts.delete(closed));
      await proxyPort.listen();
      proxyPorts.add(proxyPort);
      return proxyPort;
    },
    close() {
      for (const proxyPort of proxyPorts) proxyPort.close();
    },
  };
}
