/** A proxy to PostgreSQL that, on request, cuts connections at random bytes, or becomes silent. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A connection is cut after at most this many bytes in both directions: during its handshake, or some statements later. */
const LONGEST_LIFE_BYTES = 8_000;

export interface CuttingProxy {
  /** The given URL through the proxy. */
  url: string;
  /** Number of cut connections. */
  cuts(): number;
  /** Number of lost answers. */
  answersLost(): number;
  /** From now on each connection, including current ones, is cut after a random number of bytes. */
  cut(): void;
  /** Cuts the connection before the next answer to a statement whose text contains `to`, or an answer that contains `with`. */
  loseAnswer(which: { to: string } | { with: string }): void;
  /** Withholds the answer to the next statement whose text contains `to`. Resolves then, to a function that cuts that connection. */
  withhold(to: string): Promise<() => void>;
  /** From now on nothing passes, without an error to either side. */
  silence(): void;
  heal(): void;
  stop(): Promise<void>;
}

interface Way {
  sockets: readonly [Socket, Socket];
  /** Bytes until the cut; null if there is none. */
  left: number | null;
  /** Drops further bytes of the server. */
  mute: boolean;
  /** The same, but the connection stays open. */
  withheld: boolean;
}

export async function startCuttingProxy(target: string): Promise<CuttingProxy> {
  const { hostname, port } = new URL(target);
  const ways = new Set<Way>();
  let cutting = false;
  let silent = false;
  let cuts = 0;
  let answersLost = 0;
  let unanswered: { to?: string; with?: string } = {};
  let withholding: { to: string; isWithheld: (cut: () => void) => void } | null = null;

  const life = () => 1 + Math.floor(Math.random() * LONGEST_LIFE_BYTES);

  /** The other side does not receive the lost bytes: half of the cuts are resets, half are ends. */
  function end(way: Way): void {
    ways.delete(way);
    for (const socket of way.sockets) {
      if (Math.random() < 0.5) socket.resetAndDestroy();
      else socket.destroySoon();
    }
  }

  /** True if this answer is to be lost. */
  function isLost(way: Way, chunk: Buffer, from: Socket): boolean {
    const isAnswer = from === way.sockets[1];
    const named = isAnswer ? unanswered.with : unanswered.to;
    if (named !== undefined && chunk.includes(named)) {
      way.mute = true;
      unanswered = {};
    }
    return isAnswer && way.mute;
  }

  /** True if this answer is to be withheld. */
  function isWithheld(way: Way, chunk: Buffer, from: Socket): boolean {
    if (from === way.sockets[1]) return way.withheld;
    if (withholding && chunk.includes(withholding.to)) {
      way.withheld = true;
      withholding.isWithheld(() => end(way));
      withholding = null;
    }
    return false;
  }

  function pass(way: Way, chunk: Buffer, from: Socket, to: Socket): void {
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
    const way: Way = { sockets: [near, far], left: cutting ? life() : null, mute: false, withheld: false };
    ways.add(way);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on("error", () => undefined);
      from.on("data", (chunk) => ways.has(way) && pass(way, chunk, from, to));
      from.on("close", () => ways.delete(way) && to.destroy());
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
      for (const way of ways) way.left = life();
    },
    loseAnswer(which) {
      unanswered = which;
    },
    withhold: (to) => new Promise((isWithheld) => (withholding = { to, isWithheld })),
    silence() {
      silent = true;
      for (const { sockets } of ways) for (const socket of sockets) socket.pause();
    },
    heal() {
      cutting = false;
      silent = false;
      for (const way of ways) way.left = null;
      for (const { sockets } of ways) for (const socket of sockets) socket.resume();
    },
    async stop() {
      for (const way of [...ways]) end(way);
      server.close();
      await once(server, "close");
    },
  };
}
