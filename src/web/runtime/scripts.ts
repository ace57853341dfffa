/** Loads scripts into the page without eval: dependencies once, and an action's code with its integrity hash. */

import { ACTION_REGISTRY_NAME, type RegisteredAction } from "../../rules/compile-script.js";
import type { Connection } from "./connection.js";

/** Script that the page loads before an action's code. `integrity` is its hash, set if the service itself stores a copy of the script. */
interface ScriptDependency {
  url: string;
  integrity?: string | null;
}

export interface ActionScript {
  id: number;
  /** Subresource integrity of the compiled script, such as sha256-…. */
  integrity: string;
  assets: ScriptDependency[];
}

export type ExecuteAction = ReturnType<RegisteredAction["define"]>;

interface ScriptAttributes {
  integrity?: string;
  crossOrigin?: "use-credentials" | "anonymous";
  nonce?: string;
}

function loadScript(src: string, attributes: ScriptAttributes): Promise<void> {
  const script = Object.assign(document.createElement("script"), { src, async: false }, attributes);
  const scriptLoad = new Promise<void>((resolve, reject) => {
    script.onload = () => resolve();
    script.onerror = () => reject(new Error(`the script ${src} could not be loaded`));
    document.head.append(script);
  });
  return scriptLoad.finally(() => script.remove());
}

/** Loads a script from its text. The page's content security policy must allow blob: URLs or the nonce. */
export function loadScriptText(source: string, attributes: ScriptAttributes): Promise<void> {
  const blobUrl = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  return loadScript(blobUrl, attributes).finally(() => URL.revokeObjectURL(blobUrl));
}

function findRegisteredAction(id: number): RegisteredAction | undefined {
  const registry = (globalThis as unknown as Record<symbol, Map<number, RegisteredAction> | undefined>)[
    Symbol.for(ACTION_REGISTRY_NAME)
  ];
  return registry?.get(id);
}

/** Creates the loader of scripts. @param nonce nonce of the page's own script, for pages whose content security policy requires one */
export function createScriptLoader(
  { appId, resolveUrl, fetchScriptSource, getToken }: Connection,
  nonce: string | undefined,
) {
  const dependencyLoads = new Map<string, Promise<void>>();
  const nonceAttribute = nonce ? { nonce } : {};

  function loadDependency({ url, integrity }: ScriptDependency): Promise<void> {
    const src = new URL(url, resolveUrl("/")).href;
    // Browsers can check the integrity of a script from another origin only with CORS. The service allows CORS for stored scripts.
    const integrityAttributes = integrity ? ({ integrity, crossOrigin: "anonymous" } as const) : {};
    const dependencyLoad = dependencyLoads.get(src) ?? loadScript(src, { ...integrityAttributes, ...nonceAttribute });
    dependencyLoads.set(src, dependencyLoad);
    // If a script fails to load, removes its promise from the cache, so that the next run loads the script again.
    dependencyLoad.catch(() => dependencyLoads.delete(src));
    return dependencyLoad;
  }

  /** Loads an action's code with a script element. If there is a token, fetches the source instead: a script element sends no token. */
  async function loadActionCode(id: number, integrity: string): Promise<void> {
    const url = resolveUrl(`/v3/apps/${appId()}/actions/${id}/compile?v=${encodeURIComponent(integrity)}`);
    if (getToken() === null) {
      const crossOriginAttribute = url.origin === location.origin ? {} : ({ crossOrigin: "use-credentials" } as const);
      return loadScript(url.href, { integrity, ...crossOriginAttribute, ...nonceAttribute });
    }
    return loadScriptText(await fetchScriptSource(url, integrity), nonceAttribute);
  }

  /** Loads an action's scripts in order, because a package may need the previous one. Returns the action's function `execute`. */
  async function loadAction({ id, integrity, assets }: ActionScript): Promise<ExecuteAction> {
    for (const asset of assets) await loadDependency(asset);
    await loadActionCode(id, integrity);
    const registeredAction = findRegisteredAction(id);
    if (!registeredAction)
      throw new Error(`the script of the action ${id} was loaded, but did not define the function of the action`);
    return registeredAction.define();
  }

  return { load: loadAction };
}
