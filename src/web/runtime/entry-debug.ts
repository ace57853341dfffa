/**
 * Script `/client/debug.js` of the debug page, loaded after svc.js. Runs the page's action in this page, so that breakpoints work. All
 * other actions run in the service.
 */
import { ACTION_REGISTRY_NAME, type RegisteredAction } from "../../rules/compile-script.js";
import { readEmbeddedPageData } from "./page-data.js";
import { loadScriptText } from "./scripts.js";

const { script = "" } = readEmbeddedPageData();

const nonce = (document.currentScript as HTMLScriptElement | null)?.nonce;
const scriptLoading = loadScriptText(script, nonce ? { nonce } : {}).catch((error: unknown) => console.error(error));

const actions = window.Svc.App.V3.Actions;
const { run, runWithResult } = actions;

async function findAction(nameOrId: string | number): Promise<RegisteredAction | undefined> {
  await scriptLoading;
  const registry = (globalThis as unknown as Record<symbol, Map<number, RegisteredAction> | undefined>)[
    Symbol.for(ACTION_REGISTRY_NAME)
  ];
  return [...(registry ?? [])].find(([id, { name }]) => id === nameOrId || name === nameOrId)?.[1];
}

Object.assign(actions, {
  async run(nameOrId: string | number, payload: object = {}) {
    const debuggedAction = await findAction(nameOrId);
    if (!debuggedAction) return run(nameOrId, payload);
    await debuggedAction.define()({ payload: structuredClone(payload), settings: {} });
  },
  async runWithResult(nameOrId: string | number, payload: object = {}) {
    const debuggedAction = await findAction(nameOrId);
    return debuggedAction
      ? debuggedAction.define()({ payload: structuredClone(payload), settings: {} })
      : runWithResult(nameOrId, payload);
  },
});
