/**
 * `/client/debug.js`, for the debug page after svc.js: runs the actions whose scripts the page holds in this very page,
 * so that breakpoints hold, and leaves all others to the service (specification, Debug page).
 */
import { type CompiledAction, REGISTRY } from "../../rules/compile-script.js";

const appId = Number(document.currentScript?.dataset["appId"]);
if (appId > 0) window.Svc.configure({ appId });

const actions = window.Svc.App.V3.Actions;
const { run, runWithResult } = actions;

function find(nameOrId: string | number): CompiledAction | undefined {
  const registry = (globalThis as unknown as Record<symbol, Map<number, CompiledAction> | undefined>)[
    Symbol.for(REGISTRY)
  ];
  return [...(registry ?? [])].find(([id, { name }]) => id === nameOrId || name === nameOrId)?.[1];
}

Object.assign(actions, {
  async run(nameOrId: string | number, payload: object = {}) {
    const here = find(nameOrId);
    if (!here) return run(nameOrId, payload);
    await here.define()({ payload: structuredClone(payload), settings: {} });
  },
  async runWithResult(nameOrId: string | number, payload: object = {}) {
    const here = find(nameOrId);
    return here ? here.define()({ payload: structuredClone(payload), settings: {} }) : runWithResult(nameOrId, payload);
  },
});
