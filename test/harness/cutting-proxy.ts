/** Proxy to PostgreSQL. A test can make the proxy cut connections, drop or withhold responses, or stop forwarding data. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** Maximum number of bytes that the proxy forwards, in both directions together, before it cuts a connection. */
const BYTES_BEFORE_CUT_MAX = 8_000;

export interface CuttingProxy {
  /** URL of the database through the proxy. */
  url: string;
  /** Number of cut connections. */
  cuts(): number;
  /** Number of responses of the database that the proxy has dropped. */
  droppedAnswers(): number;
  /** Until `restore`, cuts each current and new connection after a random number of bytes. */
  cut(): void;
  /** Drops the response to the next statement that contains `to`, or the next response that contains `with`. Then cuts the connection. */
  dropAnswer(condition: { to: string } | { with: string }): void;
  /**
   * Withholds the response to the next statement that contains `to`. Resolves, at this statement, to a function that cuts the connection.
   */
  withhold(to: string): Promise<() => void>;
  /** Until `restore`, forwards no data in either direction. All connections stay open. */
  stopForwarding(): void;
  /** Ends `cut` and `stopForwarding`. Connections that the proxy has cut stay closed. */
  restore(): void;
  stop(): Promise<void>;
}

interface ProxyConnection {
  sockets: readonly [Socket, Socket];
  /** Number of bytes until the cut; null if none is planned. */
  bytesLeft: number | null;
  /** True if the proxy ends the connection instead of forwarding the server's next response. */
  isMuted: boolean;
  /** True if the proxy drops all further bytes from the server, but keeps the connection open. */
  isResponseWithheld: boolean;
}

export async function startCuttingProxy(target: string): Promise<CuttingProxy> {
  const { hostname, port } = new URL(target);
  const connections = new Set<ProxyConnection>();
  let cutting = false;
  let silent = false;
  let cuts = 0;
  let droppedAnswers = 0;
  let unanswered: { to?: string; with?: string } = {};
  let withholding: { to: string; resolve: (cut: () => void) => void } | null = null;

  const bytesUntilCut = () => 1 + Math.floor(Math.random() * BYTES_BEFORE_CUT_MAX);

  /** Closes both sockets of the connection, each with a probability of 50 % by a reset. */
  function closeConnection(connection: ProxyConnection): void {
    connections.delete(connection);
    for (const socket of connection.sockets) {
      if (Math.random() < 0.5) socket.resetAndDestroy();
      else socket.destroySoon();
    }
  }

  /** Returns true if the chunk is a response that the proxy drops. Plans the drop if the chunk contains the text of `dropAnswer`. */
  function isLost(connection: ProxyConnection, chunk: Buffer, from: Socket): boolean {
    const isAnswer = from === connection.sockets[1];
    const named = isAnswer ? unanswered.with : unanswered.to;
    if (named !== undefined && chunk.includes(named)) {
      connection.isMuted = true;
      unanswered = {};
    }
    return isAnswer && connection.isMuted;
  }

  /** Returns true if the chunk is a withheld response. Starts to withhold if the chunk is the statement that `withhold` waits for. */
  function isWithheld(connection: ProxyConnection, chunk: Buffer, from: Socket): boolean {
    if (from === connection.sockets[1]) return connection.isResponseWithheld;
    if (withholding && chunk.includes(withholding.to)) {
      connection.isResponseWithheld = true;
      withholding.resolve(() => closeConnection(connection));
      withholding = null;
    }
    return false;
  }

  function forwardChunk(connection: ProxyConnection, chunk: Buffer, from: Socket, to: Socket): void {
    if (isWithheld(connection, chunk, from)) return;
    if (isLost(connection, chunk, from)) {
      droppedAnswers += 1;
      closeConnection(connection);
      return;
    }
    if (connection.bytesLeft !== null && chunk.length >= connection.bytesLeft) {
      cuts += 1;
      to.write(chunk.subarray(0, connection.bytesLeft));
      closeConnection(connection);
      return;
    }
    if (connection.bytesLeft !== null) connection.bytesLeft -= chunk.length;
    if (to.write(chunk)) return;
    from.pause();
    to.once("drain", () => silent || from.resume());
  }

  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    const connection: ProxyConnection = {
      sockets: [near, far],
      bytesLeft: cutting ? bytesUntilCut() : null,
      isMuted: false,
      isResponseWithheld: false,
    };
    connections.add(connection);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on("error", () => undefined);
      from.on("data", (chunk) => connections.has(connection) && forwardChunk(connection, chunk, from, to));
      from.on("close", () => connections.delete(connection) && to.destroy());
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
    droppedAnswers: () => droppedAnswers,
    cut() {
      cutting = true;
      for (const connection of connections) connection.bytesLeft = bytesUntilCut();
    },
    dropAnswer(condition) {
      unanswered = condition;
    },
    withhold: (to) => new Promise((resolve) => (withholding = { to, resolve })),
    stopForwarding() {
      silent = true;
      for (const { sockets } of connections) for (const socket of sockets) socket.pause();
    },
    restore() {
      cutting = false;
      silent = false;
      for (const connection of connections) connection.bytesLeft = null;
      for (const { sockets } of connections) for (const socket of sockets) socket.resume();
    },
    async stop() {
      for (const connection of [...connections]) closeConnection(connection);
      server.close();
      await once(server, "close");
    },
  };
}
