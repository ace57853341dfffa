/**
 * Determines the network address that a request comes from, for HTTP and websockets: that of the connection, or the one that trusted
 * proxies report.
 */
import type { IncomingMessage } from "node:http";
import proxyAddr from "@fastify/proxy-addr";

/**
 * Trusted proxies, whose `X-Forwarded-For` is used: their number, their addresses and networks, or false if none is
 * trusted.
 */
export type TrustedProxies = number | string[] | false;

/** Returns the network address of a request's sender; undefined if the connection has already closed. */
export type AddressOf = (request: IncomingMessage) => string | undefined;

/**
 * Private networks, in which proxies usually are. `X-Forwarded-For` from another network proves nothing, because any client can send this
 * header.
 */
const isInternalAddress = proxyAddr.compile(["loopback", "linklocal", "uniquelocal", "100.64.0.0/10"]);

/** @param onIgnoredProxy called for each request with an ignored `X-Forwarded-For` from a private network, with the address of the proxy */
export function createAddressOf(
  trusted: TrustedProxies,
  onIgnoredProxy: (proxy: string) => void = () => undefined,
): AddressOf {
  // Trusts the first `count` addresses, counted from the peer of the socket.
  const trustHops = (count: number) => (_address: string, hop: number) => hop < count;
  const trustProxy = Array.isArray(trusted) ? proxyAddr.compile(trusted) : trustHops(Number(trusted));
  return (request) => {
    const { remoteAddress: peer } = request.socket;
    if (
      request.headers["x-forwarded-for"] !== undefined &&
      peer !== undefined &&
      !trustProxy(peer, 0) &&
      isInternalAddress(peer, 0)
    ) {
      onIgnoredProxy(peer);
    }
    return proxyAddr(request, trustProxy);
  };
}
