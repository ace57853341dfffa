/** Finds origins in an action's code to which it seems to send requests. Studio suggests them; a wrong guess has no effect. */

const ADDRESS = /https:\/\/[a-z0-9.:-]+/gi;
const REQUESTS = ".request(";
const OFFERED_MAX = 3;

/** Returns at most three origins in the order of the code, and none if the code sends no requests. */
export function requestedOrigins(code: string): string[] {
  if (!code.includes(REQUESTS)) return [];
  const origins = (code.match(ADDRESS) ?? []).map((address) => URL.parse(address)?.origin ?? null);
  const named = origins.filter((origin): origin is string => origin?.includes(".") ?? false);
  return [...new Set(named)].slice(0, OFFERED_MAX);
}
