/**
 * TCP proxy in front of a server. Until `release` is called, clients get only the first bytes of the server's data, and their connections
 * stay open.
 */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface StallingProxy {
  /** URL of the target, but with the port of the proxy. */
  url: string;
  /** Resolves when the proxy has held back bytes of a connection. If `passedBytes` is 0, resolves when a client has sent bytes. */
  stalled: Promise<void>;
  /** Closes all connections. For later connections, the proxy passes on all bytes. */
  release(): void;
  stop(): Promise<void>;
}

/** @param passedBytes number of bytes per connection that the proxy passes on from the server; with 0, the proxy does not connect */
export async function startStallingProxy(target: string, passedBytes: number): Promise<StallingProxy> {
  const { hostname, port } = new URL(target);
  const { promise: stalled, resolve: setStalled } = Promise.withResolvers<void>();
  const sockets = new Set<Socket>();
  let isStalling = true;
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined).once("close", () => sockets.delete(socket));
  };

  function passOn(near: Socket, far: Socket): void {
    let left = isStalling ? passedBytes : Number.POSITIVE_INFINITY;
    near.pipe(far);
    far.on("data", (chunk: Buffer) => {
      const isCut = chunk.length > left;
      near.write(chunk.subarray(0, Math.min(chunk.length, left)));
      left -= Math.min(chunk.length, left);
      if (isCut) setStalled();
    });
    far.once("close", () => left > 0 && near.destroy());
    near.once("close", () => far.destroy());
  }

  const server = createServer((near) => {
    keep(near);
    if (isStalling && passedBytes === 0) {
      near.resume();
      near.once("data", setStalled);
      return;
    }
    const far = connect(Number(port), hostname);
    keep(far);
    passOn(near, far);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(target);
  url.port = String((server.address() as AddressInfo).port);
  const endAll = () => {
    for (const socket of sockets) socket.destroy();
  };

  return {
    url: url.href,
    stalled,
    release() {
      isStalling = false;
      endAll();
    },
    async stop() {
      endAll();
      server.close();
      await once(server, "close");
    },
  };
}
