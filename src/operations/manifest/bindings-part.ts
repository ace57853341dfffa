/**
 * Plans how an app's secret bindings must change to match a manifest. A binding names a setting, an origin, and the part of outgoing
 * requests to this origin into which the service inserts the setting's value. A manifest never contains this value.
 */
import { isDeepStrictEqual } from "node:util";
import type { EntityManager } from "typeorm";
import { ActionError, type ManifestPathFault } from "../../errors.js";
import { normalizeOrigin } from "../../rules/integration-origins.js";
import type { Manifest } from "../../rules/manifest.js";
import { findSealedKeyMissingValue, type SecretBinding } from "../../rules/secret-bindings.js";
import type { BindingDefinitions } from "../requests/binding-definitions.js";
import { readStoredSettingStatus } from "../settings/setting-definitions.js";
import { type DefinitionsPlan, type ManifestPlanContext, toPathFault } from "./definitions-plan.js";

type BindingItem = NonNullable<Manifest["secretBindings"]>[number];

const BINDINGS_FIELD = "secretBindings";

const formatBindingName = ({ key, origin }: Pick<SecretBinding, "key" | "origin">): string => `${key} ${origin}`;

export const sortBindings = (bindings: readonly SecretBinding[]): SecretBinding[] =>
  bindings.toSorted((a, b) => (formatBindingName(a) < formatBindingName(b) ? -1 : 1));

const formatNormalizedName = ({ key, origin }: BindingItem): string => {
  const url = URL.parse(origin);
  return formatBindingName({ key, origin: (url && normalizeOrigin(url)) ?? origin });
};

/** Converts an error to a fault with the binding's path in the manifest. @throws `error` if it is not an ActionError */
function toBindingFault(error: unknown): ManifestPathFault {
  if (!(error instanceof ActionError)) throw error;
  const message = error.message.replace(/^bindings/, BINDINGS_FIELD);
  const { path, ...rest } = toPathFault("", new ActionError(error.status, message), [BINDINGS_FIELD]);
  return { ...rest, path: path.slice(1) || BINDINGS_FIELD };
}

async function readKeysWithValue(manager: EntityManager, appId: number): Promise<Set<string>> {
  const statusRows = await readStoredSettingStatus(manager, appId, null);
  return new Set(statusRows.filter(({ updatedAt }) => updatedAt !== null).map(({ key }) => key));
}

/**
 * Plans how the app's secret bindings change. The plan's list `missing` names bindings that do not work until the value of their setting is
 * written. These are bindings of settings without a value, and changes that need the value of a sealed setting (which code cannot read)
 * again: a new destination, or a binding that is not sealed. `apply` throws FORBIDDEN if such a change is planned.
 */
export async function planBindingChanges(
  definitions: BindingDefinitions,
  { manager, caller, appId, prune, keepsData }: ManifestPlanContext,
  items: readonly BindingItem[] | undefined,
  currentBindings: readonly SecretBinding[],
): Promise<DefinitionsPlan> {
  const plan: DefinitionsPlan = { changes: [], faults: [], requiredOperations: [], apply: async () => undefined };
  if (items === undefined) return plan;
  const currentByName = new Map(currentBindings.map((binding) => [formatBindingName(binding), binding]));
  const namesInManifest = new Set(items.map(formatNormalizedName));
  // A promotion from another stage keeps bindings and settings that only the target app has.
  const isPruned = prune && !keepsData;
  const keptBindings = isPruned
    ? []
    : currentBindings.filter((binding) => !namesInManifest.has(formatBindingName(binding)));
  let bindingsAfter: SecretBinding[];
  try {
    const mergedBindings = items.map((item) => {
      const currentBinding = currentByName.get(formatNormalizedName(item));
      return currentBinding?.in === item.in ? { ...currentBinding, ...item } : item;
    });
    bindingsAfter = definitions.read([...mergedBindings, ...keptBindings]);
  } catch (error) {
    plan.faults.push(toBindingFault(error));
    return plan;
  }
  const changedBindings = bindingsAfter.filter(
    (binding) => !isDeepStrictEqual(currentByName.get(formatBindingName(binding)), binding),
  );
  const names = new Set(bindingsAfter.map(formatBindingName));
  const removedBindings = currentBindings.filter((binding) => !names.has(formatBindingName(binding)));
  const createBindingChange = (changeKind: "created" | "changed" | "removed") => (binding: SecretBinding) => ({
    ...{ kind: "secretBinding" as const, changeKind },
    name: formatBindingName(binding),
  });
  plan.changes = [
    ...changedBindings.map((binding) =>
      createBindingChange(currentByName.has(formatBindingName(binding)) ? "changed" : "created")(binding),
    ),
    ...removedBindings.map(createBindingChange("removed")),
  ];
  const configuredSettings = await readKeysWithValue(manager, appId);
  const unsealedKeys = new Set(bindingsAfter.filter((binding) => !binding.sealed).map(({ key }) => key));
  const isGuarded = (key: string) => configuredSettings.has(key) || unsealedKeys.has(key);
  const sealedKeys = (await definitions.sealedKeys(manager, appId)).filter(isGuarded);
  const keysWithoutValue = sealedKeys.filter(
    (key) => findSealedKeyMissingValue(currentBindings, [key], bindingsAfter) !== null,
  );
  plan.missing = bindingsAfter
    .filter(
      (binding) =>
        !configuredSettings.has(binding.key) ||
        (keysWithoutValue.includes(binding.key) && changedBindings.includes(binding)),
    )
    .map((binding) => ({ kind: "secretBinding", name: formatBindingName(binding) }));
  plan.requiredOperations = plan.changes.length === 0 ? [] : ["writeSecretBindings"];
  plan.apply = async () => {
    if (keysWithoutValue.length > 0) {
      const problem =
        `the setting ${keysWithoutValue[0]} is sealed, so its value must be sent again to unseal it, or to send it to another ` +
        "origin or in another way";
      throw new ActionError(
        "FORBIDDEN",
        `${problem}; first write the secret binding with the value of the setting, and then apply the manifest`,
      );
    }
    if (plan.changes.length > 0) await definitions.write(manager, caller, appId, bindingsAfter);
  };
  return plan;
}
