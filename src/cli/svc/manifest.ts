/**
 * Reads a manifest (the document with all definitions of an app) as a list of items with kind and name, and computes
 * the differences between two manifests.
 */
import { createTwoFilesPatch } from "diff";
import type { UnvalidatedDefinition } from "../../engine/bundler/project/action-config.js";
import { removeConfigBlock } from "../../engine/bundler/project/action-file.js";

export type { UnvalidatedDefinition as Item };

/** Fields of a manifest that the command line reads. The service checks all other fields. */
export interface Manifest {
  version: number;
  app?: UnvalidatedDefinition;
  settings?: UnvalidatedDefinition[];
  secretBindings?: UnvalidatedDefinition[];
  dataSources?: UnvalidatedDefinition[];
  actions?: UnvalidatedDefinition[];
  alerts?: UnvalidatedDefinition[];
}

const getItemName = ({ name }: UnvalidatedDefinition): string => String(name);

const ITEM_KINDS = [
  ["setting", "settings", ({ key }: UnvalidatedDefinition) => String(key)],
  ["secret binding", "secretBindings", ({ key, origin }: UnvalidatedDefinition) => `${key} ${origin}`],
  ["data source", "dataSources", getItemName],
  ["action", "actions", getItemName],
  ["alert", "alerts", getItemName],
] as const;

export type ManifestChangeKind = "created" | "changed" | "removed";

export interface ManifestDifference {
  kind: string;
  name: string;
  change: ManifestChangeKind;
  patch: string;
}

/** Fields that only the service sets. A comparison of two manifests ignores them. */
const IGNORED_FIELDS = ["assets"];

function sortFields(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortFields);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inner]) => [key, sortFields(inner)]),
  );
}

export interface ManifestActionSource {
  language: string;
  files: Record<string, string>;
}

export const getActionSource = ({ source }: UnvalidatedDefinition): ManifestActionSource | null =>
  (source as ManifestActionSource | null | undefined) ?? null;

/** Returns the text of an action's files without the main file's config block, because the block's fields are compared separately. */
function formatFiles({ files }: ManifestActionSource): string {
  const names = Object.keys(files).sort();
  return names
    .map(
      (name) => `// ${name}\n${(name.startsWith("action.") ? removeConfigBlock(files[name]!) : files[name]!).trim()}\n`,
    )
    .join("\n");
}

/** Returns the text by which two versions of an item are compared line by line: its fields, then its files or its code. */
function formatItem(item: UnvalidatedDefinition | undefined): string {
  if (!item) return "";
  const { code, source: _, ...rest } = item;
  const fields = Object.fromEntries(Object.entries(rest).filter(([name]) => !IGNORED_FIELDS.includes(name)));
  const head = `${JSON.stringify(sortFields(fields), null, 2)}\n`;
  const source = getActionSource(item);
  if (source) return `${head}\n${formatFiles(source)}`;
  return typeof code === "string" ? `${head}\n${code.trimEnd()}\n` : head;
}

function mapItemsByKey(manifest: Manifest): Map<string, { kind: string; name: string; item: UnvalidatedDefinition }> {
  const items = new Map<string, { kind: string; name: string; item: UnvalidatedDefinition }>();
  if (manifest.app && Object.keys(manifest.app).length > 0)
    items.set("app", { kind: "app", name: "app", item: manifest.app });
  for (const [kind, field, getName] of ITEM_KINDS) {
    for (const item of manifest[field] ?? []) {
      const name = getName(item);
      items.set(`${kind} ${name}`, { kind, name, item });
    }
  }
  return items;
}

const getPlainCode = ({ code, source }: UnvalidatedDefinition): string | null =>
  typeof code === "string" && (source ?? null) === null ? code.trimEnd() : null;

/**
 * Returns `local` without the code of actions whose code on the server is the same. Ignores white space at the end: an action's file always
 * ends with a line break, but the code on the server may have none. A push must not count this as a change.
 */
export function omitEqualCode(local: Manifest, server: Manifest): Manifest {
  const storedActions = new Map((server.actions ?? []).map((action) => [getItemName(action), action]));
  const actions = (local.actions ?? []).map((action) => {
    const storedAction = storedActions.get(getItemName(action));
    const plainCode = getPlainCode(action);
    if (!storedAction || plainCode === null || plainCode !== getPlainCode(storedAction)) return action;
    const { code: _, source: __, ...fields } = action;
    return fields;
  });
  return { ...local, ...(local.actions && { actions }) };
}

/**
 * Returns the changes from `before` to `after`. If an item in `after` lacks a field, this field counts as unchanged.
 * @param isComplete true if `after` is complete, so that an item which it lacks counts as removed
 */
export function compareManifests(before: Manifest, after: Manifest, isComplete: boolean): ManifestDifference[] {
  const [oldItems, newItems] = [mapItemsByKey(before), mapItemsByKey(after)];
  const changes: ManifestDifference[] = [];
  for (const [key, { kind, name, item }] of newItems) {
    const oldItem = oldItems.get(key)?.item;
    const [oldText, newText] = [formatItem(oldItem), formatItem({ ...oldItem, ...item })];
    if (oldText === newText) continue;
    const patch = createTwoFilesPatch(key, key, oldText, newText, undefined, undefined, { context: 3 });
    changes.push({ kind, name, change: oldItem ? "changed" : "created", patch });
  }
  for (const [key, { kind, name, item }] of oldItems) {
    if (!isComplete || newItems.has(key)) continue;
    const patch = createTwoFilesPatch(key, key, formatItem(item), "", undefined, undefined, { context: 3 });
    changes.push({ kind, name, change: "removed", patch });
  }
  return changes;
}

/**
 * Returns `manifest` after the changes in `plan`. Omits removed items. Created and changed items get the fields of the items in `local`. If
 * the item in `local` lacks a field, a changed item keeps its value.
 */
export function computeManifestAfterPlan(
  manifest: Manifest,
  local: Manifest,
  plan: readonly { change: ManifestChangeKind; kind: string; name: string }[],
): Manifest {
  const [items, localItems] = [mapItemsByKey(manifest), mapItemsByKey(local)];
  for (const { change, kind, name } of plan) {
    // Converts kinds of the service's plan, such as "dataSource", to those of this file, such as "data source". Ignores the name of an "app"
    // change, because it is the name of a field: a manifest has only one app.
    const key = kind === "app" ? kind : `${kind.replace(/[A-Z]/, (letter) => ` ${letter.toLowerCase()}`)} ${name}`;
    const entry = localItems.get(key);
    if (change === "removed") items.delete(key);
    else if (entry) items.set(key, { ...entry, item: { ...items.get(key)?.item, ...entry.item } });
  }
  const listItemsOfKind = (wantedKind: string) =>
    [...items.values()].filter(({ kind }) => kind === wantedKind).map(({ item }) => item);
  const [app] = listItemsOfKind("app");
  const lists = ITEM_KINDS.map(([kind, field]) => [field, listItemsOfKind(kind)] as const);
  return { ...manifest, ...(app && { app }), ...Object.fromEntries(lists) };
}
