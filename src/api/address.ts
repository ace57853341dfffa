/** The network address that a request comes from, for HTTP and websockets: the connection's, or the one that trusted proxies report. */
import type { IncomingMessage } from "node:http";
import proxyAddr from "@fastify/proxy-addr";

/** Proxies whose `X-Forwarded-For` is believed: their number, their addresses and networks, or none. */
export type TrustedProxies = number | string[] | false;

/** Returns undefined if the connection is gone. */
export type AddressOf = (request: IncomingMessage) => string | undefined;

/** Networks that proxies are in as a rule. Anyone on the internet can send `X-Forwarded-For`, so that it says nothing from there. */
const isInside = proxyAddr.compile(["loopback", "linklocal", "uniquelocal", "100.64.0.0/10"]);

/** @param onIgnoredProxy called with the address of a proxy in a private network whose `X-Forwarded-For` is not believed, each time */
export function createAddressOf(
  trusted: TrustedProxies,
  onIgnoredProxy: (proxy: string) => void = () => undefined,
): AddressOf {
  // As proxies are counted: the nearest is the socket's own peer.
  const counted = (count: number) => (_address: string, hop: number) => hop < count;
  const trust = Array.isArray(trusted) ? proxyAddr.compile(trusted) : counted(Number(trusted));
  return (request) => {
    const { remoteAddress: peer } = request.socket;
    if (
      request.headers["x-forwarded-for"] !== undefined &&
      peer !== undefined &&
      !trust(peer, 0) &&
      isInside(peer, 0)
    ) {
      onIgnoredProxy(peer);
    }
    return proxyAddr(request, trust);
  };
}
