/** Defines a package's namespace where actions look for it, before or after svc.js loads. The first definition of a name stays. */

export function define(namespace: string, members: object): void {
  const page = globalThis as unknown as { Svc?: Record<string, unknown> };
  page.Svc ??= {};
  page.Svc[namespace] ??= Object.freeze(members);
}
