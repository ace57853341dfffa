/**
 * Compares the actions in a document (an import file or a manifest) with the app's drafts, and writes them. A draft
 * with the same name is replaced.
 */
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
 * An exported action: the fields that authors write. All fields are present, so that an import also clears fields.
 * `assets` identifies the scripts of its packages. An import uses exactly these scripts if the service has them.
 */
export type ExportedAction = Omit<ActionInput, keyof RunLimits> &
  LimitData & { assets?: { name: string; version?: string; integrity: string }[] };

/** An action in a document, and its resolved dependencies. */
export interface ImportEntry {
  data: unknown;
  resolved: ResolvedPackages;
}

/** A validated action in a document that can be written. */
export interface ImportStep {
  /** The draft to replace; null to create a draft. */
  current: ActionRow | null;
  validated: ValidatedAction;
  /** Names of the fields that change; empty for a new draft. */
  fields: string[];
}

function exportedAssets({ assets }: ActionRow): Pick<ExportedAction, "assets"> {
  const stored = assets
    .filter(isStoredScript)
    .map(({ name, version, integrity }) => ({ name, ...(version && { version }), integrity: integrity! }));
  return stored.length === 0 ? {} : { assets: stored };
}

/** Returns an action as it is exported. */
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

/** Returns the name of an action in a document; null if it is missing or not a text. */
export const stringNameOf = (data: unknown): string | null =>
  isObject(data) && typeof data["name"] === "string" ? data["name"] : null;

/**
 * Returns the names of the actions. Leaves out names with a NUL character, because the database cannot store it; the
 * validation reports such a name.
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
    /** Returns the app's drafts, sorted by name. */
    async listDrafts(manager: EntityManager, appId: number): Promise<ActionRow[]> {
      const actionRows = await manager
        .getRepository(ActionRow)
        .findBy({ appId, actionVersion: "v3", masterId: IsNull() });
      return actionRows.sort((a, b) => (a.name < b.name ? -1 : 1));
    },

    /**
     * Locks the app's drafts with these names until the transaction ends. Null locks all drafts. The order is fixed, so
     * that two transactions cannot deadlock. Returns the drafts by name.
     */
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

    /**
     * Checks the code and resolves the dependencies of each action. Call it before the transaction, so that no lock is
     * held meanwhile.
     */
    async prepare(author: ScriptAuthor, all: readonly unknown[]): Promise<ImportEntry[]> {
      const entries: ImportEntry[] = [];
      for (const data of all) {
        const [name] = namesOf([data]);
        const where = { appId: author.appId, name: name ?? "", masterId: IsNull(), actionVersion: "v3" };
        const row = name === undefined ? null : await db.getRepository(ActionRow).findOneBy(where);
        const promisedAssets = await packages.readPromisedAssets(isObject(data) ? data["assets"] : undefined);
        entries.push({ data, resolved: await judgement.prepare(author, data, row, promisedAssets) });
      }
      return entries;
    },

    /**
     * Validates one action.
     * @param rewrittenIds drafts that the document replaces or removes. Other actions in the document may use the URL
     *   paths of these drafts
     * @throws ActionError the statuses for invalid fields (rules/validation-table.ts), DEPENDENCY_UNRESOLVED,
     *   ACTION_NOT_V3
     */
    async validate(
      manager: EntityManager,
      appId: number,
      { data, resolved }: ImportEntry,
      row: ActionRow | null,
      rewrittenIds: readonly number[],
    ): Promise<ImportStep> {
      if (!row) {
        const createdAction = await judgement.validateCreate(manager, appId, data, resolved, rewrittenIds);
        return { current: null, validated: createdAction, fields: [] };
      }
      if (row.actionVersion !== "v3") throw new ActionError("ACTION_NOT_V3");
      const validatedAction = await judgement.validateUpdate(manager, row, data, resolved, rewrittenIds);
      const fields = changedFields(inputOf(row), validatedAction.input);
      return {
        current: row,
        validated: validatedAction,
        fields: sameScripts(row.assets, validatedAction.assets) ? fields : [...fields, "assets"],
      };
    },

    /** Writes the validated actions. @throws NAME_ALREADY_EXISTS, REQUEST_INVALID if the app's actions are too large */
    async apply(manager: EntityManager, caller: Caller, appId: number, steps: readonly ImportStep[]): Promise<void> {
      // Writes the actions in the order of their names. Two concurrent imports then insert names into the index in the
      // same order, so that they cannot deadlock.
      const sortedSteps = steps.toSorted((a, b) => (a.validated.input.name < b.validated.input.name ? -1 : 1));
      const rewritten = steps.flatMap(({ current: row, fields }) => (row && fields.length > 0 ? [row.id] : []));
      await freeRoutes(manager, rewritten);
      for (const { current: row, validated: validatedAction, fields } of sortedSteps) {
        if (!row) await masters.insert(manager, caller, appId, validatedAction);
        else if (fields.length > 0) await masters.replace(manager, caller, row, validatedAction);
      }
    },
  };
}
