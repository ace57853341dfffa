/** The network address that a request comes from, for HTTP and websockets: the connection's, or the one that trusted proxies report. */
import type { IncomingMessage } from "node:http";
import proxyAddr from "@fastify/proxy-addr";

/** The trusted proxies, whose `X-Forwarded-For` is used: their number, their addresses and networks, or none. */
export type TrustedProxies = number | string[] | false;

/** Returns undefined if the connection is gone. */
export type AddressOf = (request: IncomingMessage) => string | undefined;

/** Private networks, in which proxies usually are. From elsewhere `X-Forwarded-For` proves nothing, because any client can send it. */
const isInside = proxyAddr.compile(["loopback", "linklocal", "uniquelocal", "100.64.0.0/10"]);

/** @param onIgnoredProxy called with the address of a proxy in a private network whose `X-Forwarded-For` is ignored, each time */
export function createAddressOf(
  trusted: TrustedProxies,
  onIgnoredProxy: (proxy: string) => void = () => undefined,
): AddressOf {
  // Counts proxies from the nearest: the peer of the socket.
  const trustHops = (count: number) => (_address: string, hop: number) => hop < count;
  const trustProxy = Array.isArray(trusted) ? proxyAddr.compile(trusted) : trustHops(Number(trusted));
  return (request) => {
    const { remoteAddress: peer } = request.socket;
    if (
      request.headers["x-forwarded-for"] !== undefined &&
      peer !== undefined &&
      !trustProxy(peer, 0) &&
      isInside(peer, 0)
    ) {
      onIgnoredProxy(peer);
    }
    return proxyAddr(request, trustProxy);
  };
}
