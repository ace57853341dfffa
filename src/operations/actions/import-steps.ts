/** Compares the actions of a document with the app's drafts, and writes them by name. Shared by imports and manifests. */
import { type DataSource, type EntityManager, IsNull } from "typeorm";
import { ActionRow } from "../../data/action.js";
import type { LimitData, RunLimits, StoredAsset } from "../../data/action-types.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import { type ActionInput, NO_LIMITS, presentSource } from "../../rules/action-input.js";
import { shownSource } from "../../rules/action-source.js";
import { isObject } from "../../rules/described.js";
import { isStoredScript } from "../../rules/packages.js";
import { freeRoutes } from "../http/routes.js";
import type { Packages, ResolvedPackages } from "../packages/packages.js";
import type { ScriptAuthor } from "../packages/script-quota.js";
import { inputOf } from "./action-rows.js";
import type { ActionValidation, ValidatedAction } from "./judgement.js";
import { changedFields, type Masters } from "./masters.js";

/**
 * Author's fields of an exported action. All fields are present, so that an import can also clear them. `assets` names
 * the stored scripts exactly; an import uses the same scripts if the service has them.
 */
export type ExportedAction = Omit<ActionInput, keyof RunLimits> &
  LimitData & { assets?: { name: string; version?: string; integrity: string }[] };

/** An action of a document with its resolved dependencies. */
export interface ImportEntry {
  data: unknown;
  resolved: ResolvedPackages;
}

/** An action of a document that can be written. */
export interface ImportStep {
  /** Draft to replace; null to create one. */
  current: ActionRow | null;
  judged: ValidatedAction;
  /** Names of the fields that change. */
  fields: string[];
}

function exportedAssets({ assets }: ActionRow): Pick<ExportedAction, "assets"> {
  const stored = assets
    .filter(isStoredScript)
    .map(({ name, version, integrity }) => ({ name, ...(version && { version }), integrity: integrity! }));
  return stored.length === 0 ? {} : { assets: stored };
}

export const exportedAction = (row: ActionRow): ExportedAction => ({
  ...NO_LIMITS,
  ...inputOf(row),
  ...presentSource(row.source && shownSource(row.source)),
  ...exportedAssets(row),
});

const scriptsOf = (assets: readonly StoredAsset[]) =>
  assets.map(({ name, sha256 = "" }) => `${name} ${sha256}`).join("\n");
const sameScripts = (left: readonly StoredAsset[], right: readonly StoredAsset[]) =>
  scriptsOf(left) === scriptsOf(right);

export const stringNameOf = (data: unknown): string | null =>
  isObject(data) && typeof data["name"] === "string" ? data["name"] : null;

/**
 * Returns the names that actions can have. A name with a NUL character is left out, because a text column cannot hold it; the rules report
 * it.
 */
export const namesOf = (all: readonly unknown[]): string[] =>
  all.map(stringNameOf).filter((name): name is string => name !== null && !name.includes("\0"));

export type ImportSteps = ReturnType<typeof createImportSteps>;

export function createImportSteps(options: {
  db: DataSource;
  judgement: ActionValidation;
  masters: Masters;
  packages: Packages;
}) {
  const { db, judgement, masters, packages } = options;

  return {
    /** Returns the app's drafts by name. */
    async stored(manager: EntityManager, appId: number): Promise<ActionRow[]> {
      const actionRows = await manager
        .getRepository(ActionRow)
        .findBy({ appId, actionVersion: "v3", masterId: IsNull() });
      return actionRows.sort((a, b) => (a.name < b.name ? -1 : 1));
    },

    /** Locks the app's drafts with those names, or all drafts, until the end of the transaction and in a fixed order. */
    async lock(manager: EntityManager, appId: number, names: string[] | null): Promise<Map<string, ActionRow>> {
      const actionRows = await manager
        .createQueryBuilder(ActionRow, "action")
        .where("action.appId = :appId AND action.masterId IS NULL", { appId })
        .andWhere("(:all OR action.name = ANY (:names))", { all: names === null, names: names ?? [] })
        .orderBy("action.id")
        .setLock("for_no_key_update")
        .getMany();
      return new Map(actionRows.map((row) => [row.name, row]));
    },

    /** Checks the code and resolves the dependencies of each action, before anything is locked. */
    async ahead(author: ScriptAuthor, all: readonly unknown[]): Promise<ImportEntry[]> {
      const entries: ImportEntry[] = [];
      for (const data of all) {
        const [name] = namesOf([data]);
        const where = { appId: author.appId, name: name ?? "", masterId: IsNull(), actionVersion: "v3" };
        const row = name === undefined ? null : await db.getRepository(ActionRow).findOneBy(where);
        const promisedAssets = await packages.promised(isObject(data) ? data["assets"] : undefined);
        entries.push({ data, resolved: await judgement.ahead(author, data, row, promisedAssets) });
      }
      return entries;
    },

    /**
     * Validates one action.
     * @param rewrittenIds drafts that the document replaces or removes, whose addresses are free
     * @throws ActionError a status of the validation table, DEPENDENCY_UNRESOLVED, ACTION_NOT_V3
     */
    async step(
      manager: EntityManager,
      appId: number,
      { data, resolved }: ImportEntry,
      row: ActionRow | null,
      rewrittenIds: readonly number[],
    ): Promise<ImportStep> {
      if (!row) {
        const createdAction = await judgement.created(manager, appId, data, resolved, rewrittenIds);
        return { current: null, judged: createdAction, fields: [] };
      }
      if (row.actionVersion !== "v3") throw new ActionError("ACTION_NOT_V3");
      const validatedAction = await judgement.updated(manager, row, data, resolved, rewrittenIds);
      const fields = changedFields(inputOf(row), validatedAction.input);
      return {
        current: row,
        judged: validatedAction,
        fields: sameScripts(row.assets, validatedAction.assets) ? fields : [...fields, "assets"],
      };
    },

    /** @throws NAME_ALREADY_EXISTS, REQUEST_INVALID when the app's actions are too large */
    async apply(manager: EntityManager, caller: Caller, appId: number, steps: readonly ImportStep[]): Promise<void> {
      // Writes in the order of names. Two concurrent imports then insert into the index of names in the same order, so they cannot
      // deadlock.
      const sortedSteps = steps.toSorted((a, b) => (a.judged.input.name < b.judged.input.name ? -1 : 1));
      const rewritten = steps.flatMap(({ current: row, fields }) => (row && fields.length > 0 ? [row.id] : []));
      await freeRoutes(manager, rewritten);
      for (const { current: row, judged: validatedAction, fields } of sortedSteps) {
        if (!row) await masters.insert(manager, caller, appId, validatedAction);
        else if (fields.length > 0) await masters.replace(manager, caller, row, validatedAction);
      }
    },
  };
}
