/**
 * Determines the network address of the sender of an HTTP request or websocket: the peer of the connection, or the address that trusted
 * proxies report.
 */
import type { IncomingMessage } from "node:http";
import proxyAddr from "@fastify/proxy-addr";

/**
 * Proxies that the service trusts to send a correct `X-Forwarded-For` header: their number, or a list of their
 * addresses and networks; false for none.
 */
export type TrustedProxies = number | string[] | false;

/** Returns the network address of a request's sender; undefined if the connection has already closed. */
export type GetClientAddress = (request: IncomingMessage) => string | undefined;

/** Private networks. An ignored `X-Forwarded-For` header from such an address probably comes from a proxy that is not configured. */
const isInternalAddress = proxyAddr.compile(["loopback", "linklocal", "uniquelocal", "100.64.0.0/10"]);

/**
 * Returns a function that finds the network address of the sender of a request.
 * @param onIgnoredProxy called with the address of the connection for each ignored `X-Forwarded-For` header from a
 * private network
 */
export function createClientAddressGetter(
  trustedProxies: TrustedProxies,
  onIgnoredProxy: (proxy: string) => void = () => undefined,
): GetClientAddress {
  // Trusts the `count` proxies nearest to the service; hop 0 is the peer of the connection.
  const trustHops = (count: number) => (_address: string, hop: number) => hop < count;
  const trustProxy = Array.isArray(trustedProxies)
    ? proxyAddr.compile(trustedProxies)
    : trustHops(Number(trustedProxies));
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
