/**
 * Finds origins to which an action's code seems to send requests. Studio only suggests them as allowed origins, so a wrong guess does no
 * harm.
 */

const URL_PATTERN = /https:\/\/[a-z0-9.:-]+/gi;
const REQUEST_CALL = ".request(";
const MAX_SUGGESTED_ORIGINS = 3;

/**
 * Returns the first MAX_SUGGESTED_ORIGINS origins in the code that begin with "https:" and contain a dot. Returns none if the code has no
 * call of `request`.
 */
export function findRequestedOrigins(code: string): string[] {
  if (!code.includes(REQUEST_CALL)) return [];
  const origins = (code.match(URL_PATTERN) ?? []).map((address) => URL.parse(address)?.origin ?? null);
  const namedOrigins = origins.filter((origin): origin is string => origin?.includes(".") ?? false);
  return [...new Set(namedOrigins)].slice(0, MAX_SUGGESTED_ORIGINS);
}
