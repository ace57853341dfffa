/**
 * The way out of a browser: a forward proxy, on loopback unless told otherwise, that resolves a name once, checks every address that it has, and
 * connects to a checked one. Knows no app and no run: who asks is a lane, and what it contacts is told to a callback.
 */
import { promises as dns, type LookupAddress } from "node:dns";
import { isIP, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import ipaddr from "ipaddr.js";
import { type PrepareRequestFunctionOpts, type PrepareRequestFunctionResult, RequestError, Server } from "proxy-chain";
import { agentOver, connectWithin, type Destination, tunnelTo } from "./egress-proxy/outgoing.js";
import { peerUid } from "./egress-proxy/socket-owner.js";

const LOOPBACK = "127.0.0.1";
const WEB_PORTS: readonly number[] = [80, 443];
const CONNECT_TIMEOUT_MS = 10_000;
/** Everything outside it is unassigned, or an IPv4 address in one of its disguises. */
const GLOBAL_UNICAST_V6 = ipaddr.parseCIDR("2000::/3") as [ipaddr.IPv6, number];

export interface EgressOptions {
  /** true reaches any address and any port: tests and local development only. */
  allowPrivateNetwork: boolean;
  /**
   * What may be reached although it is private: `host:port` as the page names it, and the address behind that name.
   * Asked anew for every connection, since the service learns its own port late.
   */
  endpoints?: () => ReadonlyMap<string, string>;
  /** The local address of every outgoing connection; null leaves it to the system. */
  localAddress?: string | null;
  ports?: readonly number[];
  /** The IP address at which lanes listen; default 127.0.0.1. */
  host?: string;
  /** Whether a lane serves who comes from that IP address, asked for each connection; default yes, for loopback. */
  serves?: (peer: string) => boolean;
  /** Whether a lane serves a process of this machine that runs under that uid; default any. Where no uid is told, it serves. */
  servesUid?: (uid: number) => boolean;
  /** How long a host may take to accept a connection; default 10 s. */
  connectTimeoutMs?: number;
  /** All addresses of a name; default as the machine sees it. */
  resolve?: (hostname: string) => Promise<LookupAddress[]>;
}

/** Whom a lane tells and asks. Hosts are `host:port`. */
export interface EgressClient {
  /** Each host contacted, once. */
  onHost(host: string): void;
  /** A host to which there is no connection, and why in words. */
  onRefused?(host: string, reason: string): void;
  /** A host to which a connection was made. */
  onReached?(host: string): void;
  /** Asked before anything is looked up; default yes. */
  mayConnect?(host: string): Promise<boolean>;
}

export interface EgressLane {
  /** `http://host:port`, this lane's alone. */
  readonly proxyServer: string;
  /** Opens the lane for a client; before the first and between two of them it is shut. */
  begin(client: EgressClient): void;
  /** Shuts the lane: ends every connection, and refuses every later one, before this returns. */
  end(): void;
  /** Whether anything was asked of the lane since `begin`. */
  used(): boolean;
  /** Whether any of it was asked after `end`. */
  usedLate(): boolean;
  close(): void;
}

export interface EgressProxy {
  openLane(): Promise<EgressLane>;
  close(): void;
}

/**
 * Whether an address belongs to a host of the public internet: neither private, loopback, link-local, shared, multicast
 * or reserved, nor one of the IPv6 forms that carry an IPv4 address, nor this machine's own.
 */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 0 || address.includes("%")) return false;
  const parsed = ipaddr.process(address);
  if (parsed.range() !== "unicast") return false;
  if (parsed instanceof ipaddr.IPv6 && !parsed.match(GLOBAL_UNICAST_V6)) return false;
  const own = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return !own.some((one) => ipaddr.process(one.address).toString() === parsed.toString());
}

function bare(hostname: string): string {
  return hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
}

async function addressesOf(hostname: string, options: EgressOptions): Promise<LookupAddress[]> {
  const family = isIP(hostname);
  if (family !== 0) return [{ address: hostname, family }];
  const resolve = options.resolve ?? ((name: string) => dns.lookup(name, { all: true, verbatim: true }));
  try {
    return await resolve(hostname);
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    const unknown = ["ENOTFOUND", "ENODATA"].includes(code);
    throw new RequestError(
      `${unknown ? "there is no host of that name" : "the name could not be looked up"} (${code})`,
      502,
    );
  }
}

/** Where to connect to. @throws RequestError 403 or 502, before any connection is made */
async function destinationOf(hostname: string, port: number, options: EgressOptions): Promise<Destination> {
  const endpoint = options.endpoints?.().get(`${hostname}:${port}`);
  if (endpoint !== undefined) {
    return { hostname, port, addresses: [{ address: endpoint, family: isIP(endpoint) }], localAddress: null };
  }
  const { allowPrivateNetwork, ports = WEB_PORTS, localAddress = null } = options;
  if (!allowPrivateNetwork && !ports.includes(port))
    throw new RequestError(`port ${port} is not one that a run may reach: ${ports.join(" and ")} are`, 403);
  const found = await addressesOf(hostname, options);
  if (!allowPrivateNetwork && !found.every(({ address }) => isPublicAddress(address))) {
    throw new RequestError(`${hostname} is no public address, and a run reaches no other`, 403);
  }
  const addresses = found.filter(({ family }) => localAddress === null || family === isIP(localAddress));
  if (addresses.length === 0) throw new RequestError(`${hostname} has no address`, 502);
  return { hostname, port, addresses, localAddress };
}

const ended = () => new RequestError("the run has ended", 403);
/** One for all runs: each made anew costs the most of a run's end. */
const ENDED = ended();

class Lane implements EgressLane {
  private client: EgressClient | null = null;
  private hosts = new Set<string>();
  private asked = false;
  private askedLate = false;
  private readonly known = new WeakSet<Socket>();
  private closed = false;
  /** Ends what the lane has connected to, or is about to. */
  private outgoing = new AbortController();
  private readonly server: Server;

  constructor(
    private readonly options: EgressOptions,
    private readonly onClose: (lane: Lane) => void,
  ) {
    const { host = LOOPBACK, serves } = options;
    const prepareRequestFunction = (request: PrepareRequestFunctionOpts) => this.prepare(request);
    this.server = new Server({ host, port: 0, prepareRequestFunction });
    // Before the proxy's own listener, so that nothing is read of what a stranger sends.
    this.server.server.prependListener("connection", (socket: Socket) => {
      const peer = socket.remoteAddress ?? "";
      if (serves?.(ipaddr.isValid(peer) ? ipaddr.process(peer).toString() : peer) === false) socket.destroy();
    });
  }

  listen(): Promise<void> {
    return this.server.listen();
  }

  get proxyServer(): string {
    const { host = LOOPBACK } = this.options;
    return `http://${isIP(host) === 6 ? `[${host}]` : host}:${this.server.port}`;
  }

  /** Asked once for each connection. @throws RequestError for a process that is no browser of ours */
  private async knows(socket: Socket): Promise<void> {
    const { servesUid } = this.options;
    if (!servesUid || this.known.has(socket)) return;
    const uid = await peerUid(socket);
    if (uid !== null && !servesUid(uid)) throw new RequestError("this way out belongs to another user", 403);
    this.known.add(socket);
  }

  private async prepare(call: PrepareRequestFunctionOpts): Promise<PrepareRequestFunctionResult> {
    const { port, isHttp, request } = call;
    const { client } = this;
    await this.knows(request.socket);
    this.asked = true;
    const host = bare(call.hostname);
    if (client === null) {
      this.askedLate = true;
      throw ended();
    }
    try {
      const socket = await this.reach(client, host, port);
      if (!isHttp) return { customConnectServer: tunnelTo(socket) };
      const silence = () => client.onRefused?.(`${host}:${port}`, "the host closed the connection without an answer");
      return { httpAgent: agentOver(socket, silence) };
    } catch (error) {
      client.onRefused?.(`${host}:${port}`, (error as Error).message);
      throw error;
    }
  }

  /** A connection that the run may have. @throws RequestError */
  private async reach(client: EgressClient, host: string, port: number): Promise<Socket> {
    const name = `${host}:${port}`;
    if ((await client.mayConnect?.(name)) === false) throw new RequestError("the run may not connect there", 403);
    const destination = await destinationOf(host, port, this.options);
    if (client !== this.client || this.closed) throw ended();
    if (!this.hosts.has(name)) client.onHost(name);
    this.hosts.add(name);
    const { connectTimeoutMs = CONNECT_TIMEOUT_MS } = this.options;
    const socket = await connectWithin(destination, connectTimeoutMs, this.outgoing.signal);
    if (client !== this.client) {
      socket.destroy();
      throw ended();
    }
    client.onReached?.(name);
    return socket;
  }

  begin(client: EgressClient): void {
    this.end();
    this.asked = false;
    this.askedLate = false;
    this.hosts = new Set();
    this.client = client;
  }

  end(): void {
    this.client = null;
    if (!this.asked) return;
    this.outgoing.abort(ENDED);
    this.outgoing = new AbortController();
    this.server.closeConnections();
  }

  used(): boolean {
    return this.asked;
  }

  usedLate(): boolean {
    return this.askedLate;
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.end();
    this.server.close(true).catch(() => {});
    this.onClose(this);
  }
}

export function createEgressProxy(options: EgressOptions): EgressProxy {
  const lanes = new Set<Lane>();
  return {
    async openLane() {
      const lane = new Lane(options, (closed) => lanes.delete(closed));
      await lane.listen();
      lanes.add(lane);
      return lane;
    },
    close() {
      for (const lane of lanes) lane.close();
    },
  };
}
