/**
 * Reverse proxy that serves the service under a path of another host, as docs/operate/proxy.md describes. Records requests outside of this
 * path.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import { type AddressInfo, connect } from "node:net";
import type { Duplex } from "node:stream";

export interface PrefixProxy {
  /** URL with the prefix, without a trailing slash. */
  url: string;
  /** Requested paths outside of the prefix, except those of the OAuth metadata of this prefix. */
  outside: string[];
  setTarget(url: string): void;
  /** Ends open connections and refuses new ones until `restore` is called. */
  cut(): void;
  restore(): void;
  stop(): Promise<void>;
}

export async function startPrefixProxy(prefix: string): Promise<PrefixProxy> {
  const outside: string[] = [];
  const tunnels = new Set<Duplex>();
  let port = 0;
  let isCut = false;

  function inside({ url = "" }: IncomingMessage): string | null {
    if (url.startsWith("/.well-known/oauth-") && url.includes(prefix, url.indexOf("/", 13))) return url;
    if (url === prefix || url.startsWith(`${prefix}/`)) return url.slice(prefix.length) || "/";
    outside.push(url);
    return null;
  }

  const server = createServer((incoming, reply) => {
    if (isCut) return void incoming.destroy();
    const path = inside(incoming);
    if (path === null) return void reply.writeHead(404).end();
    const { method, headers } = incoming;
    const onward = request({ port, host: "127.0.0.1", path, method, headers }, (answer) => {
      reply.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(reply);
    });
    onward.on("error", () => reply.destroy());
    // When the client's connection ends, ends the connection to the service. Otherwise, a response without a reader would keep it open.
    reply.on("close", () => onward.destroy());
    incoming.pipe(onward);
  });
  server.on("upgrade", (incoming, near, head) => {
    const path = inside(incoming);
    if (isCut || path === null) return near.destroy();
    tunnels.add(near);
    near.on("close", () => tunnels.delete(near));
    const far = connect(port, "127.0.0.1", () => {
      const headers = incoming.rawHeaders.reduce((text, part, index) => text + part + (index % 2 ? "\r\n" : ": "), "");
      far.write(`${incoming.method} ${path} HTTP/1.1\r\n${headers}\r\n`);
      far.write(head);
      far.pipe(near).pipe(far);
    });
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on("error", () => to.destroy());
      from.on("close", () => to.destroy());
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${prefix}`,
    outside,
    setTarget(url) {
      port = Number(new URL(url).port);
    },
    cut() {
      isCut = true;
      server.closeAllConnections();
      for (const tunnel of tunnels) tunnel.destroy();
    },
    restore() {
      isCut = false;
    },
    async stop() {
      server.close().closeAllConnections();
    },
  };
}
