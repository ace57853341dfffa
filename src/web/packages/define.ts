/** Puts a package's namespace where actions look for it, whether svc.js came before or comes after. The first of a name stays. */

export function define(namespace: string, members: object): void {
  const page = globalThis as unknown as { Svc?: Record<string, unknown> };
  page.Svc ??= {};
  page.Svc[namespace] ??= Object.freeze(members);
}
