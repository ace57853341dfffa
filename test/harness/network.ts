/** Network path to the service that a test can cut and restore. A cut ends all connections. During the cut, new connections fail. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface Network {
  url: string;
  /** Forwards new connections to the service at this URL. */
  setTarget(url: string): void;
  cut(): void;
  restore(): void;
  stop(): Promise<void>;
}

export async function startNetwork(): Promise<Network> {
  const sockets = new Set<Socket>();
  let port: number | null = null;
  let whole = true;

  const server = createServer((near) => {
    if (!whole || port === null) return void near.destroy();
    const far = connect(port, "127.0.0.1");
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => other.destroy());
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  function cut(): void {
    whole = false;
    for (const socket of sockets) socket.destroy();
  }

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    setTarget(url) {
      port = Number(new URL(url).port);
    },
    cut,
    restore() {
      whole = true;
    },
    async stop() {
      cut();
      server.close();
      await once(server, "close");
    },
  };
}
