/** Proxy to PostgreSQL. A test can make the proxy cut connections, drop or withhold responses, or stop forwarding data. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** Maximum number of bytes, sum of both directions, before a cut. */
const BYTES_BEFORE_CUT_MAX = 8_000;

export interface CuttingProxy {
  /** URL of the database through the proxy. */
  url: string;
  /** Number of cut connections. */
  cuts(): number;
  /** Number of responses of the database that the proxy has dropped. */
  answersLost(): number;
  /** Until `heal`, cuts each current and new connection after a random number of bytes. */
  cut(): void;
  /** Cuts a connection and drops its response: to the next statement that contains `to`, or the next one that contains `with`. */
  loseAnswer(which: { to: string } | { with: string }): void;
  /**
   * Withholds the response to the next statement that contains `to`. Resolves, at this statement, to a function that cuts the connection.
   */
  withhold(to: string): Promise<() => void>;
  silence(): void;
  heal(): void;
  stop(): Promise<void>;
}

interface ProxyConnection {
  sockets: readonly [Socket, Socket];
  /** Number of bytes until the cut; null if none is planned. */
  left: number | null;
  /** True if the proxy ends the connection instead of forwarding the server's next response. */
  mute: boolean;
  /** True if the proxy drops all further bytes from the server, but keeps the connection open. */
  withheld: boolean;
}

export async function startCuttingProxy(target: string): Promise<CuttingProxy> {
  const { hostname, port } = new URL(target);
  const connections = new Set<ProxyConnection>();
  let cutting = false;
  let silent = false;
  let cuts = 0;
  let answersLost = 0;
  let unanswered: { to?: string; with?: string } = {};
  let withholding: { to: string; isWithheld: (cut: () => void) => void } | null = null;

  const bytesUntilCut = () => 1 + Math.floor(Math.random() * BYTES_BEFORE_CUT_MAX);

  /** Closes both sockets of the connection, each with a probability of 50 % by a reset. */
  function end(way: ProxyConnection): void {
    connections.delete(way);
    for (const socket of way.sockets) {
      if (Math.random() < 0.5) socket.resetAndDestroy();
      else socket.destroySoon();
    }
  }

  function isLost(way: ProxyConnection, chunk: Buffer, from: Socket): boolean {
    const isAnswer = from === way.sockets[1];
    const named = isAnswer ? unanswered.with : unanswered.to;
    if (named !== undefined && chunk.includes(named)) {
      way.mute = true;
      unanswered = {};
    }
    return isAnswer && way.mute;
  }

  function isWithheld(way: ProxyConnection, chunk: Buffer, from: Socket): boolean {
    if (from === way.sockets[1]) return way.withheld;
    if (withholding && chunk.includes(withholding.to)) {
      way.withheld = true;
      withholding.isWithheld(() => end(way));
      withholding = null;
    }
    return false;
  }

  function pass(way: ProxyConnection, chunk: Buffer, from: Socket, to: Socket): void {
    if (isWithheld(way, chunk, from)) return;
    if (isLost(way, chunk, from)) {
      answersLost += 1;
      end(way);
      return;
    }
    if (way.left !== null && chunk.length >= way.left) {
      cuts += 1;
      to.write(chunk.subarray(0, way.left));
      end(way);
      return;
    }
    if (way.left !== null) way.left -= chunk.length;
    if (to.write(chunk)) return;
    from.pause();
    to.once("drain", () => silent || from.resume());
  }

  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    const way: ProxyConnection = {
      sockets: [near, far],
      left: cutting ? bytesUntilCut() : null,
      mute: false,
      withheld: false,
    };
    connections.add(way);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on("error", () => undefined);
      from.on("data", (chunk) => connections.has(way) && pass(way, chunk, from, to));
      from.on("close", () => connections.delete(way) && to.destroy());
      if (silent) from.pause();
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(target);
  url.port = String((server.address() as AddressInfo).port);

  return {
    url: url.href,
    cuts: () => cuts,
    answersLost: () => answersLost,
    cut() {
      cutting = true;
      for (const way of connections) way.left = bytesUntilCut();
    },
    loseAnswer(which) {
      unanswered = which;
    },
    withhold: (to) => new Promise((isWithheld) => (withholding = { to, isWithheld })),
    silence() {
      silent = true;
      for (const { sockets } of connections) for (const socket of sockets) socket.pause();
    },
    heal() {
      cutting = false;
      silent = false;
      for (const way of connections) way.left = null;
      for (const { sockets } of connections) for (const socket of sockets) socket.resume();
    },
    async stop() {
      for (const way of [...connections]) end(way);
      server.close();
      await once(server, "close");
    },
  };
}
