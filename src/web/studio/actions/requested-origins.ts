/** Origins that an action's code names and seems to send requests to. A guess for an offer: it refuses nothing. */

const ADDRESS = /https:\/\/[a-z0-9.:-]+/gi;
const REQUESTS = ".request(";
const OFFERED_MAX = 3;

/** At most three, in the order of the code; none where the code sends no requests. */
export function requestedOrigins(code: string): string[] {
  if (!code.includes(REQUESTS)) return [];
  const origins = (code.match(ADDRESS) ?? []).map((address) => URL.parse(address)?.origin ?? null);
  const named = origins.filter((origin): origin is string => origin?.includes(".") ?? false);
  return [...new Set(named)].slice(0, OFFERED_MAX);
}
