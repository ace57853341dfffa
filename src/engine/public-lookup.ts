/**
 * Addresses of names that somebody else gives, asked of the name servers. The system's own look-up takes a thread for as long as a name's
 * servers are silent, and has two for the whole process: a few such names would keep everybody's. Reads no hosts file and no search list.
 */
import { promises as dns, type LookupAddress } from "node:dns";
import { isIP } from "node:net";

/** All addresses of a name. @throws with the `code` of node:dns */
export type Lookup = (hostname: string) => Promise<LookupAddress[]>;

const LIMIT_MS = 10_000;
const TRY_MS = 2_500;
/** What the system says of its name servers is read again after this long. */
const RENEWED_MS = 30_000;

/** RFC 6761: known without asking, and by no name server. */
const LOCALHOST = /(?:^|\.)localhost\.?$/i;
const LOOPBACK = { address: "127.0.0.1", family: 4 };

const late = () => Object.assign(new Error("no name server answered"), { code: "ETIMEOUT" });

/** @param options.servers as `address:port`; default the system's */
export function createPublicLookup(options: { servers?: readonly string[]; limitMs?: number } = {}): Lookup {
  const { servers, limitMs = LIMIT_MS } = options;
  let resolver: dns.Resolver | undefined;
  let madeAt = 0;

  function current(): dns.Resolver {
    if (resolver && performance.now() - madeAt < RENEWED_MS) return resolver;
    resolver = new dns.Resolver({ timeout: TRY_MS, tries: 2 });
    if (servers) resolver.setServers(servers);
    madeAt = performance.now();
    return resolver;
  }

  return async (hostname) => {
    if (LOCALHOST.test(hostname)) return [LOOPBACK];
    const asked = current();
    const limit = Promise.withResolvers<never>();
    const timer = setTimeout(() => limit.reject(late()), limitMs);
    const within = (answers: Promise<string[]>) => Promise.race([answers, limit.promise]);
    // Which of the families this machine can use is found out by connecting.
    const found = await Promise.allSettled([within(asked.resolve4(hostname)), within(asked.resolve6(hostname))]);
    clearTimeout(timer);
    const addresses = found.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
    if (addresses.length === 0) for (const one of found) if (one.status === "rejected") throw one.reason;
    return addresses.map((address) => ({ address, family: isIP(address) }));
  };
}

/** As the machine sees names, those of its own network too. */
export const systemLookup: Lookup = (hostname) => dns.lookup(hostname, { all: true, verbatim: true });

const publicLookup = createPublicLookup();

/** For names that apps give: where they may mean hosts of a private network, these are often known to the machine alone. */
export const lookupFor = (allowPrivateNetwork: boolean): Lookup => (allowPrivateNetwork ? systemLookup : publicLookup);
