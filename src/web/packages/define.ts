/** Defines the global namespace of a package, before or after svc.js loads. If a name is defined twice, the first definition stays. */

export function define(namespace: string, members: object): void {
  const page = globalThis as unknown as { Svc?: Record<string, unknown> };
  page.Svc ??= {};
  page.Svc[namespace] ??= Object.freeze(members);
}
