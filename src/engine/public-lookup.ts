/**
 * Resolves the host names that apps use, by queries to the name servers. The system's resolver would occupy a thread
 * until the servers answer. The process has few threads, so a few names with silent servers would block all lookups.
 * Queries ignore the hosts file and search domains.
 */
import { promises as dns, type LookupAddress } from "node:dns";
import { isIP } from "node:net";

/** Returns all addresses of a host name. @throws an error with a `code` of node:dns */
type ResolveHost = (hostname: string) => Promise<LookupAddress[]>;

const LOOKUP_TIMEOUT_MS = 10_000;
const ATTEMPT_TIMEOUT_MS = 2_500;
/** Time in milliseconds after which the system's list of name servers is read again. */
const SERVERS_CACHE_MS = 30_000;

/**
 * Matches names of the loopback address (RFC 6761). They are resolved without a query, because name servers do not have
 * them.
 */
const LOCALHOST_NAME = /(?:^|\.)localhost\.?$/i;
const LOOPBACK_ADDRESS = { address: "127.0.0.1", family: 4 };

const createTimeoutError = () => Object.assign(new Error("no DNS server answered"), { code: "ETIMEOUT" });

/** Creates a resolver. @param options.servers name servers as `address:port`; by default the system's name servers */
export function createPublicHostResolver(options: { servers?: readonly string[]; limitMs?: number } = {}): ResolveHost {
  const { servers, limitMs = LOOKUP_TIMEOUT_MS } = options;
  let resolver: dns.Resolver | undefined;
  let madeAt = 0;

  function currentResolver(): dns.Resolver {
    if (resolver && performance.now() - madeAt < SERVERS_CACHE_MS) return resolver;
    resolver = new dns.Resolver({ timeout: ATTEMPT_TIMEOUT_MS, tries: 2 });
    if (servers) resolver.setServers(servers);
    madeAt = performance.now();
    return resolver;
  }

  return async (hostname) => {
    if (LOCALHOST_NAME.test(hostname)) return [LOOPBACK_ADDRESS];
    const requested = currentResolver();
    const limit = Promise.withResolvers<never>();
    const timer = setTimeout(() => limit.reject(createTimeoutError()), limitMs);
    const within = (answers: Promise<string[]>) => Promise.race([answers, limit.promise]);
    // Queries both IPv4 and IPv6 addresses. The caller's connection attempt shows which of them this machine can use.
    const lookups = await Promise.allSettled([
      within(requested.resolve4(hostname)),
      within(requested.resolve6(hostname)),
    ]);
    clearTimeout(timer);
    const addresses = lookups.flatMap((lookup) => (lookup.status === "fulfilled" ? lookup.value : []));
    if (addresses.length === 0) for (const lookup of lookups) if (lookup.status === "rejected") throw lookup.reason;
    return addresses.map((address) => ({ address, family: isIP(address) }));
  };
}

/** Resolves a host name with the system's resolver, which also resolves names of the local network. */
export const systemHostResolver: ResolveHost = (hostname) => dns.lookup(hostname, { all: true, verbatim: true });

const publicLookup = createPublicHostResolver();

/**
 * Returns the resolver for host names that apps use. By default, it sends queries to the name servers. If private
 * networks are allowed, it is the system's resolver, because only that finds names in the hosts file and search domains.
 */
export const selectHostResolver = (allowPrivateNetwork: boolean): ResolveHost =>
  allowPrivateNetwork ? systemHostResolver : publicLookup;
