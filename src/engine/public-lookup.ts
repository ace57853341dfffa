/**
 * Resolves host names of apps by querying the name servers directly. The system's resolver occupies a thread until the servers answer, and
 * the process has few threads: a few names with silent servers would block all lookups. Ignores the hosts file and search domains.
 */
import { promises as dns, type LookupAddress } from "node:dns";
import { isIP } from "node:net";

/** Returns all addresses of a name. @throws an error with the `code` of node:dns */
export type Lookup = (hostname: string) => Promise<LookupAddress[]>;

const LIMIT_MS = 10_000;
const TRY_MS = 2_500;
/** Milliseconds after which the system's list of name servers is read again. */
const RENEWED_MS = 30_000;

/** Matches names that are resolved without a query (RFC 6761), because name servers do not have them. */
const LOCALHOST = /(?:^|\.)localhost\.?$/i;
const LOOPBACK = { address: "127.0.0.1", family: 4 };

const timeoutError = () => Object.assign(new Error("no name server answered"), { code: "ETIMEOUT" });

/** @param options.servers as `address:port`; default the system's */
export function createPublicLookup(options: { servers?: readonly string[]; limitMs?: number } = {}): Lookup {
  const { servers, limitMs = LIMIT_MS } = options;
  let resolver: dns.Resolver | undefined;
  let madeAt = 0;

  function currentResolver(): dns.Resolver {
    if (resolver && performance.now() - madeAt < RENEWED_MS) return resolver;
    resolver = new dns.Resolver({ timeout: TRY_MS, tries: 2 });
    if (servers) resolver.setServers(servers);
    madeAt = performance.now();
    return resolver;
  }

  return async (hostname) => {
    if (LOCALHOST.test(hostname)) return [LOOPBACK];
    const requested = currentResolver();
    const limit = Promise.withResolvers<never>();
    const timer = setTimeout(() => limit.reject(timeoutError()), limitMs);
    const within = (answers: Promise<string[]>) => Promise.race([answers, limit.promise]);
    // Connecting shows which address families this machine can use.
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

/** Resolves a name with the system's resolver, which also knows names of the local network. */
export const systemLookup: Lookup = (hostname) => dns.lookup(hostname, { all: true, verbatim: true });

const publicLookup = createPublicLookup();

/** Returns the resolver for names of apps. If private networks are allowed, it is the system's, because only that may know their hosts. */
export const lookupFor = (allowPrivateNetwork: boolean): Lookup => (allowPrivateNetwork ? systemLookup : publicLookup);
