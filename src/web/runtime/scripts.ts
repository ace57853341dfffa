/** Brings scripts into the page without eval: dependencies once, an action's code with its hash. */

import { type CompiledAction, REGISTRY_NAME } from "../../rules/compile-script.js";
import type { Connection } from "./connection.js";

/** A script that comes before an action's; with its integrity where the service keeps it. */
interface Dependency {
  url: string;
  integrity?: string | null;
}

export interface ActionScript {
  id: number;
  /** Subresource integrity of the compiled script, such as sha256-…. */
  integrity: string;
  assets: Dependency[];
}

export type Execute = ReturnType<CompiledAction["define"]>;

interface ScriptAttributes {
  integrity?: string;
  crossOrigin?: "use-credentials" | "anonymous";
  nonce?: string;
}

function loadScript(src: string, attributes: ScriptAttributes): Promise<void> {
  const script = Object.assign(document.createElement("script"), { src, async: false }, attributes);
  const loaded = new Promise<void>((resolve, reject) => {
    script.onload = () => resolve();
    script.onerror = () => reject(new Error(`the script ${src} could not be loaded`));
    document.head.append(script);
  });
  return loaded.finally(() => script.remove());
}

/** The same for a text that has no address. The page's policy must allow blob:, or the nonce. */
export function loadText(source: string, attributes: ScriptAttributes): Promise<void> {
  const blob = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  return loadScript(blob, attributes).finally(() => URL.revokeObjectURL(blob));
}

function registered(id: number): CompiledAction | undefined {
  const registry = (globalThis as unknown as Record<symbol, Map<number, CompiledAction> | undefined>)[
    Symbol.for(REGISTRY_NAME)
  ];
  return registry?.get(id);
}

/** @param nonce the one of the page's own script, for pages whose policy asks for it */
export function createScripts({ appId, address, source, token }: Connection, nonce: string | undefined) {
  const dependencies = new Map<string, Promise<void>>();
  const withNonce = nonce ? { nonce } : {};

  function dependency({ url, integrity }: Dependency): Promise<void> {
    const src = new URL(url, address("/")).href;
    // What is read at other origins is checked only where they allow it, as this service does for what it keeps.
    const checked = integrity ? ({ integrity, crossOrigin: "anonymous" } as const) : {};
    const loading = dependencies.get(src) ?? loadScript(src, { ...checked, ...withNonce });
    dependencies.set(src, loading);
    // A failure is not remembered: the next run tries again.
    loading.catch(() => dependencies.delete(src));
    return loading;
  }

  /** A script element cannot carry a token: then the source is fetched. */
  async function actionCode(id: number, integrity: string): Promise<void> {
    const url = address(`/v3/apps/${appId()}/actions/${id}/compile?v=${encodeURIComponent(integrity)}`);
    if (token() === null) {
      const elsewhere = url.origin === location.origin ? {} : ({ crossOrigin: "use-credentials" } as const);
      return loadScript(url.href, { integrity, ...elsewhere, ...withNonce });
    }
    return loadText(await source(url, integrity), withNonce);
  }

  /** In the order given: a package may build on the one before. */
  async function load({ id, integrity, assets }: ActionScript): Promise<Execute> {
    for (const asset of assets) await dependency(asset);
    await actionCode(id, integrity);
    const compiled = registered(id);
    if (!compiled) throw new Error(`the script of action ${id} defined no action`);
    return compiled.define();
  }

  return { load };
}
