/** Defines `Svc.<namespace>` for a package, before or after svc.js loads. If a namespace is defined twice, the first definition stays. */

export function defineSvcNamespace(namespace: string, members: object): void {
  const globalObject = globalThis as unknown as { Svc?: Record<string, unknown> };
  globalObject.Svc ??= {};
  globalObject.Svc[namespace] ??= Object.freeze(members);
}
