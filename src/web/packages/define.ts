/** Defines `Svc.<namespace>` for a package, before or after svc.js loads. If a member is defined twice, the first definition stays. */

export function defineSvcNamespace(namespace: string, members: object): void {
  const globalPage = globalThis as unknown as { Svc?: Record<string, unknown> };
  globalPage.Svc ??= {};
  globalPage.Svc[namespace] ??= Object.freeze(members);
}
