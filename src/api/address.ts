/** From whose network address a request comes, for HTTP and websockets alike: the connection's, or what trusted proxies say. */
import type { IncomingMessage } from "node:http";
import proxyAddr from "@fastify/proxy-addr";

/** Whose `X-Forwarded-For` is believed: that of so many proxies, of those addresses and networks, or nobody's. */
export type TrustedProxies = number | string[] | false;

/** undefined where the connection is gone. */
export type AddressOf = (request: IncomingMessage) => string | undefined;

export function createAddressOf(trusted: TrustedProxies): AddressOf {
  // As proxies are counted: the nearest is the socket's own peer.
  const counted = (count: number) => (_address: string, hop: number) => hop < count;
  const trust = Array.isArray(trusted) ? proxyAddr.compile(trusted) : counted(Number(trusted));
  return (request) => proxyAddr(request, trust);
}
