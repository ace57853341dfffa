/**
 * Resolves the host names that apps use, by queries to the name servers, without the hosts file and search domains. The system's resolver
 * would occupy one of few threads for each silent name server, so that a few names would block all lookups.
 */
import { promises as dns, type LookupAddress } from "node:dns";
import { isIP } from "node:net";

/** Returns all addresses of a host name. @throws an error with a `code` of node:dns */
type ResolveHost = (hostname: string) => Promise<LookupAddress[]>;

const LOOKUP_TIMEOUT_MS = 10_000;
const ATTEMPT_TIMEOUT_MS = 2_500;
/** After this time, the system's list of name servers is read again. */
const SERVERS_CACHE_MS = 30_000;

/** Names of the loopback address (RFC 6761), which name servers do not have. */
const LOCALHOST_NAME_PATTERN = /(?:^|\.)localhost\.?$/i;
const LOOPBACK_ADDRESS = { address: "127.0.0.1", family: 4 };

const createTimeoutError = () => Object.assign(new Error("no DNS server answered"), { code: "ETIMEOUT" });

/** Creates a resolver. @param options.servers name servers as `address:port`; by default the system's name servers */
export function createPublicHostResolver(
  options: { servers?: readonly string[]; timeoutMs?: number } = {},
): ResolveHost {
  const { servers, timeoutMs = LOOKUP_TIMEOUT_MS } = options;
  let resolver: dns.Resolver | undefined;
  let createdAt = 0;

  function getOrCreateResolver(): dns.Resolver {
    if (resolver && performance.now() - createdAt < SERVERS_CACHE_MS) return resolver;
    resolver = new dns.Resolver({ timeout: ATTEMPT_TIMEOUT_MS, tries: 2 });
    if (servers) resolver.setServers(servers);
    createdAt = performance.now();
    return resolver;
  }

  return async (hostname) => {
    if (LOCALHOST_NAME_PATTERN.test(hostname)) return [LOOPBACK_ADDRESS];
    const currentResolver = getOrCreateResolver();
    const timeLimit = Promise.withResolvers<never>();
    const timer = setTimeout(() => timeLimit.reject(createTimeoutError()), timeoutMs);
    const withTimeLimit = (answers: Promise<string[]>) => Promise.race([answers, timeLimit.promise]);
    // Queries both IPv4 and IPv6 addresses. The caller's connection attempt shows which of them this machine can use.
    const lookups = await Promise.allSettled([
      withTimeLimit(currentResolver.resolve4(hostname)),
      withTimeLimit(currentResolver.resolve6(hostname)),
    ]);
    clearTimeout(timer);
    const addresses = lookups.flatMap((lookup) => (lookup.status === "fulfilled" ? lookup.value : []));
    if (addresses.length === 0) for (const lookup of lookups) if (lookup.status === "rejected") throw lookup.reason;
    return addresses.map((address) => ({ address, family: isIP(address) }));
  };
}

/** Resolves a host name with the system's resolver, which also resolves names of the local network. */
export const systemHostResolver: ResolveHost = (hostname) => dns.lookup(hostname, { all: true, verbatim: true });

const publicHostResolver = createPublicHostResolver();

/**
 * Returns the resolver for host names that apps use. If private networks are allowed, this is the system's resolver: only it finds names in
 * the hosts file and search domains.
 */
export const selectHostResolver = (allowPrivateNetwork: boolean): ResolveHost =>
  allowPrivateNetwork ? systemHostResolver : publicHostResolver;
