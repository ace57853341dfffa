/** The token between reloads of this tab: only where the person wished it, and never beyond the tab. */

const KEY = "svc-studio-token";

export function rememberedToken(): string | null {
  return sessionStorage.getItem(KEY);
}

/** @param token null forgets */
export function rememberToken(token: string | null): void {
  if (token === null) sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, token);
}
