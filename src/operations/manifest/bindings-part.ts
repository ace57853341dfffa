/** Secret bindings in a manifest: keys, origins and places. Values of settings are neither read nor written. */
import { isDeepStrictEqual } from "node:util";
import type { EntityManager } from "typeorm";
import { ActionError, type PathFault } from "../../errors.js";
import { normalOrigin } from "../../rules/integration-origins.js";
import type { Manifest } from "../../rules/manifest.js";
import { keyWithoutValue, type SecretBinding } from "../../rules/secret-bindings.js";
import type { BindingDefinitions } from "../requests/binding-definitions.js";
import { readStatus } from "../settings/setting-definitions.js";
import { faultAt, type PartPlan, type PlanContext } from "./part.js";

type Item = NonNullable<Manifest["secretBindings"]>[number];

const LIST = "secretBindings";

const nameOf = ({ key, origin }: Pick<SecretBinding, "key" | "origin">): string => `${key} ${origin}`;

/** Bindings in the order of their names. */
export const bindingItems = (bindings: readonly SecretBinding[]): SecretBinding[] =>
  bindings.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));

const normalNameOf = ({ key, origin }: Item): string => {
  const url = URL.parse(origin);
  return nameOf({ key, origin: (url && normalOrigin(url)) ?? origin });
};

/** The rules name `bindings[0].origin`. @throws any other error */
function bindingFault(error: unknown): PathFault {
  if (!(error instanceof ActionError)) throw error;
  const message = error.message.replace(/^bindings/, LIST);
  const { path, ...rest } = faultAt("", new ActionError(error.status, message), [LIST]);
  return { ...rest, path: path.slice(1) || LIST };
}

/** Keys of private and protected settings that have a value. */
async function configuredKeys(manager: EntityManager, appId: number): Promise<Set<string>> {
  const found = await readStatus(manager, appId, null);
  return new Set(found.filter(({ updatedAt }) => updatedAt !== null).map(({ key }) => key));
}

/**
 * The plan names bindings in `missing` whose setting has no value, or whose sealed setting needs its value again because it would get a new
 * destination. The latter are refused when they are applied.
 */
export async function planBindings(
  definitions: BindingDefinitions,
  { manager, caller, appId, prune, keepsData }: PlanContext,
  items: readonly Item[] | undefined,
  before: readonly SecretBinding[],
): Promise<PartPlan> {
  const plan: PartPlan = { changes: [], faults: [], needs: [], apply: async () => undefined };
  if (items === undefined) return plan;
  const known = new Map(before.map((one) => [nameOf(one), one]));
  const named = new Set(items.map(normalNameOf));
  // A promotion keeps bindings that only its target has, like settings.
  const isPruned = prune && !keepsData;
  const kept = isPruned ? [] : before.filter((one) => !named.has(nameOf(one)));
  let after: SecretBinding[];
  try {
    const merged = items.map((item) => {
      const stored = known.get(normalNameOf(item));
      return stored?.in === item.in ? { ...stored, ...item } : item;
    });
    after = definitions.read([...merged, ...kept]);
  } catch (error) {
    plan.faults.push(bindingFault(error));
    return plan;
  }
  const added = after.filter((one) => !isDeepStrictEqual(known.get(nameOf(one)), one));
  const names = new Set(after.map(nameOf));
  const removed = before.filter((one) => !names.has(nameOf(one)));
  const change = (verb: "created" | "changed" | "removed") => (one: SecretBinding) => ({
    ...{ kind: "secretBinding" as const, verb },
    name: nameOf(one),
  });
  plan.changes = [
    ...added.map((one) => change(known.has(nameOf(one)) ? "changed" : "created")(one)),
    ...removed.map(change("removed")),
  ];
  const configured = await configuredKeys(manager, appId);
  const unsealed = new Set(after.filter((one) => !one.sealed).map(({ key }) => key));
  const isGuarded = (key: string) => configured.has(key) || unsealed.has(key);
  const sealed = (await definitions.sealedKeys(manager, appId)).filter(isGuarded);
  const closed = sealed.filter((key) => keyWithoutValue(before, [key], after) !== null);
  plan.missing = after
    .filter((one) => !configured.has(one.key) || (closed.includes(one.key) && added.includes(one)))
    .map((one) => ({ kind: "secretBinding", name: nameOf(one) }));
  plan.needs = plan.changes.length === 0 ? [] : ["writeSecretBindings"];
  plan.apply = async () => {
    if (closed.length > 0) {
      const problem = `${closed[0]} is sealed: unsealing it, or a new destination, requires its value`;
      throw new ActionError("FORBIDDEN", `${problem}; set it with the secret bindings first`);
    }
    if (plan.changes.length > 0) await definitions.write(manager, caller, appId, after);
  };
  return plan;
}
