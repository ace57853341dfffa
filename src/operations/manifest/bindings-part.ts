/**
 * Plans the changes to an app's secret bindings that a manifest requires. A binding names a setting, an origin, and the
 * part of a request into which the value is inserted. A manifest never contains values of settings.
 */
import { isDeepStrictEqual } from "node:util";
import type { EntityManager } from "typeorm";
import { ActionError, type PathFault } from "../../errors.js";
import { normalizeOrigin } from "../../rules/integration-origins.js";
import type { Manifest } from "../../rules/manifest.js";
import { findSealedKeyNeedingValue, type SecretBinding } from "../../rules/secret-bindings.js";
import type { BindingDefinitions } from "../requests/binding-definitions.js";
import { readStatus } from "../settings/setting-definitions.js";
import { type PartPlan, type PlanContext, toFault } from "./part.js";

type Item = NonNullable<Manifest["secretBindings"]>[number];

const LIST_FIELD = "secretBindings";

const nameOf = ({ key, origin }: Pick<SecretBinding, "key" | "origin">): string => `${key} ${origin}`;

/** Returns the bindings sorted by name. */
export const bindingItems = (bindings: readonly SecretBinding[]): SecretBinding[] =>
  bindings.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));

const normalNameOf = ({ key, origin }: Item): string => {
  const url = URL.parse(origin);
  return nameOf({ key, origin: (url && normalizeOrigin(url)) ?? origin });
};

/** Converts an error about bindings to a fault with its path in the manifest. @throws any other error */
function bindingFault(error: unknown): PathFault {
  if (!(error instanceof ActionError)) throw error;
  const message = error.message.replace(/^bindings/, LIST_FIELD);
  const { path, ...rest } = toFault("", new ActionError(error.status, message), [LIST_FIELD]);
  return { ...rest, path: path.slice(1) || LIST_FIELD };
}

/** Returns the keys of private and protected settings that have a value. */
async function configuredKeys(manager: EntityManager, appId: number): Promise<Set<string>> {
  const statusRows = await readStatus(manager, appId, null);
  return new Set(statusRows.filter(({ updatedAt }) => updatedAt !== null).map(({ key }) => key));
}

/**
 * Plans the changes of bindings. `missing` of the plan lists bindings whose setting has no value. It also lists changed
 * bindings whose sealed setting would get a new destination: these cannot be applied before the value is written again.
 */
export async function planBindings(
  definitions: BindingDefinitions,
  { manager, caller, appId, prune, keepsData }: PlanContext,
  items: readonly Item[] | undefined,
  before: readonly SecretBinding[],
): Promise<PartPlan> {
  const plan: PartPlan = { changes: [], faults: [], requiredOperations: [], apply: async () => undefined };
  if (items === undefined) return plan;
  const currentByName = new Map(before.map((binding) => [nameOf(binding), binding]));
  const namesInManifest = new Set(items.map(normalNameOf));
  // A promotion does not remove bindings that only the target app has, as it does not remove settings.
  const isPruned = prune && !keepsData;
  const keptBindings = isPruned ? [] : before.filter((binding) => !namesInManifest.has(nameOf(binding)));
  let bindingsAfter: SecretBinding[];
  try {
    const mergedBindings = items.map((item) => {
      const stored = currentByName.get(normalNameOf(item));
      return stored?.in === item.in ? { ...stored, ...item } : item;
    });
    bindingsAfter = definitions.read([...mergedBindings, ...keptBindings]);
  } catch (error) {
    plan.faults.push(bindingFault(error));
    return plan;
  }
  const changedBindings = bindingsAfter.filter(
    (binding) => !isDeepStrictEqual(currentByName.get(nameOf(binding)), binding),
  );
  const names = new Set(bindingsAfter.map(nameOf));
  const removedBindings = before.filter((binding) => !names.has(nameOf(binding)));
  const bindingChange = (verb: "created" | "changed" | "removed") => (binding: SecretBinding) => ({
    ...{ kind: "secretBinding" as const, verb },
    name: nameOf(binding),
  });
  plan.changes = [
    ...changedBindings.map((binding) =>
      bindingChange(currentByName.has(nameOf(binding)) ? "changed" : "created")(binding),
    ),
    ...removedBindings.map(bindingChange("removed")),
  ];
  const configuredSettings = await configuredKeys(manager, appId);
  const unsealedKeys = new Set(bindingsAfter.filter((binding) => !binding.sealed).map(({ key }) => key));
  const isGuarded = (key: string) => configuredSettings.has(key) || unsealedKeys.has(key);
  const sealedKeys = (await definitions.sealedKeys(manager, appId)).filter(isGuarded);
  const keysWithoutValue = sealedKeys.filter((key) => findSealedKeyNeedingValue(before, [key], bindingsAfter) !== null);
  plan.missing = bindingsAfter
    .filter(
      (binding) =>
        !configuredSettings.has(binding.key) ||
        (keysWithoutValue.includes(binding.key) && changedBindings.includes(binding)),
    )
    .map((binding) => ({ kind: "secretBinding", name: nameOf(binding) }));
  plan.requiredOperations = plan.changes.length === 0 ? [] : ["writeSecretBindings"];
  plan.apply = async () => {
    if (keysWithoutValue.length > 0) {
      const problem = `the setting ${keysWithoutValue[0]} is sealed, so its value must be sent again to unseal it or to add a destination`;
      throw new ActionError(
        "FORBIDDEN",
        `${problem}; write the secret bindings with this value first, and then apply the manifest`,
      );
    }
    if (plan.changes.length > 0) await definitions.write(manager, caller, appId, bindingsAfter);
  };
  return plan;
}
