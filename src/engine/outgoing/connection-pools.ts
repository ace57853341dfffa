/** Keep-alive connections to other services, in pools by app and origin, so that no app uses another app's connection. */
import { isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { LRUCache } from "lru-cache";
import { Agent, type buildConnector } from "undici";
import { runInBackground } from "../../background.js";

/** Opens a TCP connection to a checked address of the host; rejects if no address is allowed. */
export type OpenConnection = (host: string, port: number) => Promise<Socket>;

const POOLS_MAX = 256;
const POOL_IDLE_MS = 60_000;
const CONNECTIONS_PER_ORIGIN = 8;
const HANDSHAKE_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_MS = 4_000;
const KEEP_ALIVE_MAX_MS = 30_000;
const RESPONSE_HEADERS_MAX_BYTES = 64 * 1024;

const removeBrackets = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, "$1");

function startTls(socket: Socket, hostname: string): Promise<Socket> {
  const host = removeBrackets(hostname);
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const servername = isIP(host) === 0 ? { servername: host } : {};
  const tlsSocket = connectTls({ socket, host, ...servername, ALPNProtocols: ["h2", "http/1.1"] });
  const fail = (error: NodeJS.ErrnoException) => {
    clearTimeout(timer);
    tlsSocket.destroy();
    reject(error);
  };
  const timer = setTimeout(() => fail(Object.assign(new Error(), { code: "ETIMEDOUT" })), HANDSHAKE_TIMEOUT_MS);
  const onClose = () => fail(Object.assign(new Error(), { code: "ECONNRESET" }));
  tlsSocket.once("error", fail).once("close", onClose);
  tlsSocket.once("secureConnect", () => {
    clearTimeout(timer);
    tlsSocket.off("error", fail).off("close", onClose);
    resolve(tlsSocket);
  });
  return promise;
}

function createConnector(open: OpenConnection): buildConnector.connector {
  return ({ hostname, protocol, port }, callback) => {
    const isSecure = protocol === "https:";
    const tcpSocket = open(removeBrackets(hostname), Number(port) || (isSecure ? 443 : 80));
    const readySocket = tcpSocket.then((socket) => (isSecure ? startTls(socket, hostname) : socket));
    readySocket.then(
      (socket) => callback(null, socket.setNoDelay(true) as never),
      (error: Error) => callback(error, null),
    );
  };
}

export class ConnectionPools {
  private readonly agents: LRUCache<string, Agent>;

  constructor(private readonly open: OpenConnection) {
    this.agents = new LRUCache({
      max: POOLS_MAX,
      ttl: POOL_IDLE_MS,
      updateAgeOnGet: true,
      // `close` lets the agent's active requests end before it closes the connections.
      dispose: (agent) => runInBackground(agent.close()),
    });
  }

  /** Returns the connections for a key. Each app must have a different key. */
  getPool(key: string): Agent {
    const knownAgent = this.agents.get(key);
    if (knownAgent) return knownAgent;
    const agent = new Agent({
      allowH2: true,
      connect: createConnector(this.open),
      connections: CONNECTIONS_PER_ORIGIN,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MAX_MS,
      maxHeaderSize: RESPONSE_HEADERS_MAX_BYTES,
      // The HTTP client has no time limit, because the signal of the caller aborts a request that takes too long.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    this.agents.set(key, agent);
    return agent;
  }

  async close(): Promise<void> {
    const agents = [...this.agents.values()];
    this.agents.clear();
    await Promise.all(agents.map((agent) => agent.destroy()));
  }
}
