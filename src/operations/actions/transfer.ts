/** An app's actions as one document, out and in again (export and import). Knows names, not ids: a document belongs to no app. */
import { type DataSource, type EntityManager, IsNull } from "typeorm";
import { ActionRow } from "../../data/action.js";
import type { LimitData, RunLimits, StoredAsset } from "../../data/action-types.js";
import { rows } from "../../data/database.js";
import { ActionError, type ErrorDetails } from "../../errors.js";
import { ANSWER_MAX_BYTES } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { type ActionInput, NO_LIMITS } from "../../rules/action-input.js";
import { described, isObject } from "../../rules/described.js";
import { isKept } from "../../rules/packages.js";
import type { Reserve } from "../../rules/page.js";
import { flat, refuseUnknownFields } from "../../rules/unknown-fields.js";
import { createAddressClaims, freeRoutes } from "../http/routes.js";
import type { Packages, Resolved } from "../packages/packages.js";
import type { Author } from "../packages/script-room.js";
import { inputOf } from "./action-rows.js";
import type { Judged, Judgement } from "./judgement.js";
import { changedFields, type Masters } from "./masters.js";

/** Of the document; a later one that reads otherwise gets another number. */
export const TRANSFER_FORMAT = "svc-app-actions/1";

const ACTIONS_MAX = 1_000;
/** Fields of its actions are judged with each action. */
const DOCUMENT_SHAPE = flat(["format", "actions"]);

const EXPORTED_BYTES = `
  SELECT coalesce(sum(octet_length(code) + octet_length(triggers::text)), 0)::bigint AS bytes FROM action
   WHERE app_id = $1 AND master_id IS NULL AND action_version = 'v3'`;

/** Neither ids nor times nor settings: what an author gives, sorted by name. */
export interface TransferDocument {
  format: typeof TRANSFER_FORMAT;
  actions: ExportedAction[];
}

/**
 * Whole, so that what is not set is cleared where it is imported. `assets`: of scripts that the service keeps, which exactly; an import
 * brings those very scripts back where they are known.
 */
type ExportedAction = Omit<ActionInput, keyof RunLimits> &
  LimitData & { assets?: { name: string; version?: string; integrity: string }[] };

export type ImportFault = NonNullable<ErrorDetails["faults"]>[number];

/** What an import did or, in a dry run, would do. `faults` is empty unless it is a dry run. */
export interface ImportReport {
  dryRun: boolean;
  created: string[];
  updated: { name: string; fields: string[] }[];
  unchanged: string[];
  faults: ImportFault[];
}

/** What a document says of an action, and what its dependencies become. */
interface Entry {
  data: unknown;
  resolved: Resolved;
}

interface Step {
  /** null: to be created. */
  current: ActionRow | null;
  judged: Judged;
  fields: string[];
}

interface Plan {
  steps: Step[];
  faults: ImportFault[];
}

/** @throws REQUEST_INVALID */
function entriesOf(document: unknown): unknown[] {
  const { format, actions } = isObject(document) ? document : {};
  if (format !== TRANSFER_FORMAT) {
    throw new ActionError("REQUEST_INVALID", `format must be "${TRANSFER_FORMAT}"; ${described(format)} came`);
  }
  if (!Array.isArray(actions) || actions.length > ACTIONS_MAX) {
    const expected = `an array of at most ${ACTIONS_MAX} actions`;
    throw new ActionError("REQUEST_INVALID", `actions must be ${expected}; ${described(actions)} came`);
  }
  return actions;
}

function exportedAssets({ assets }: ActionRow): Pick<ExportedAction, "assets"> {
  const kept = assets
    .filter(isKept)
    .map(({ name, version, integrity }) => ({ name, ...(version && { version }), integrity: integrity! }));
  return kept.length === 0 ? {} : { assets: kept };
}

const scriptsOf = (assets: readonly StoredAsset[]) =>
  assets.map(({ name, sha256 = "" }) => `${name} ${sha256}`).join("\n");
const sameScripts = (one: readonly StoredAsset[], other: readonly StoredAsset[]) => scriptsOf(one) === scriptsOf(other);

const nameOf = (entry: unknown): string | null =>
  isObject(entry) && typeof entry["name"] === "string" ? entry["name"] : null;

function reportOf({ steps, faults }: Plan, dryRun: boolean): ImportReport {
  const named = (wanted: (step: Step) => boolean) => steps.filter(wanted).map(({ judged }) => judged.input.name);
  return {
    dryRun,
    created: named(({ current }) => current === null),
    updated: steps
      .filter(({ current, fields }) => current !== null && fields.length > 0)
      .map(({ judged, fields }) => ({ name: judged.input.name, fields })),
    unchanged: named(({ current, fields }) => current !== null && fields.length === 0),
    faults,
  };
}

function refusalOf({ steps, faults }: Plan): ActionError {
  const all = steps.length + faults.length;
  const [{ name, error }] = faults as [ImportFault];
  const message = `nothing was imported: ${faults.length} of ${all} actions cannot be, ${name ?? "one"} first: ${error}`;
  return new ActionError("REQUEST_INVALID", message, { faults });
}

export type Transfer = ReturnType<typeof createTransfer>;

export function createTransfer(options: {
  db: DataSource;
  judgement: Judgement;
  masters: Masters;
  packages: Packages;
}) {
  const { db, judgement, masters, packages } = options;

  /** The app's masters of those names, locked until the end in one order for all. */
  async function current(manager: EntityManager, appId: number, names: string[]): Promise<Map<string, ActionRow>> {
    const found = await manager
      .createQueryBuilder(ActionRow, "action")
      .where("action.appId = :appId AND action.masterId IS NULL AND action.name = ANY (:names)", { appId, names })
      .orderBy("action.id")
      .setLock("pessimistic_write")
      .getMany();
    return new Map(found.map((row) => [row.name, row]));
  }

  /** @param rewritten the actions of the document that there are already, which may exchange addresses */
  async function step(
    manager: EntityManager,
    appId: number,
    { data, resolved }: Entry,
    row: ActionRow | null,
    rewritten: readonly number[],
  ): Promise<Step> {
    if (!row) {
      const created = await judgement.created(manager, appId, data, resolved, rewritten);
      return { current: null, judged: created, fields: [] };
    }
    if (row.actionVersion !== "v3") throw new ActionError("ACTION_NOT_V3");
    const judged = await judgement.updated(manager, row, data, resolved, rewritten);
    const fields = changedFields(inputOf(row), judged.input);
    return { current: row, judged, fields: sameScripts(row.assets, judged.assets) ? fields : [...fields, "assets"] };
  }

  async function planOf(manager: EntityManager, appId: number, entries: Entry[]): Promise<Plan> {
    // A text column holds no NUL, so no action bears such a name; the rules say so of the entry.
    const names = entries
      .map(({ data }) => nameOf(data))
      .filter((name) => name !== null && !name.includes("\0")) as string[];
    const known = await current(manager, appId, names);
    const rewritten = [...known.values()].map(({ id }) => id);
    const seen = new Set<string>();
    const claimAddresses = createAddressClaims();
    const plan: Plan = { steps: [], faults: [] };
    for (const [index, entry] of entries.entries()) {
      const name = nameOf(entry.data);
      try {
        if (name !== null && seen.has(name)) {
          throw new ActionError("NAME_ALREADY_EXISTS", `name must be unique; ${described(name)} came twice`);
        }
        if (name !== null) seen.add(name);
        const planned = await step(manager, appId, entry, known.get(name ?? "") ?? null, rewritten);
        claimAddresses(planned.judged.input.triggers);
        plan.steps.push(planned);
      } catch (error) {
        if (!(error instanceof ActionError)) throw error;
        plan.faults.push({ index, name, status: error.status, error: error.message });
      }
    }
    return plan;
  }

  /** Each entry with what its dependencies become, before anything is locked. */
  async function resolvedAhead(author: Author, all: unknown[]): Promise<Entry[]> {
    const entries: Entry[] = [];
    for (const data of all) {
      const name = nameOf(data);
      const where = { appId: author.appId, name: name ?? "", masterId: IsNull(), actionVersion: "v3" };
      const row = name === null || name.includes("\0") ? null : await db.getRepository(ActionRow).findOneBy(where);
      const promised = await packages.promised(isObject(data) ? data["assets"] : undefined);
      entries.push({ data, resolved: await judgement.ahead(author, data, row, promised) });
    }
    return entries;
  }

  async function apply(manager: EntityManager, caller: Caller, appId: number, { steps }: Plan): Promise<void> {
    // By name: two imports at once take the places in the index of names in one order, and none waits for the other in a circle.
    const sorted = steps.toSorted((a, b) => (a.judged.input.name < b.judged.input.name ? -1 : 1));
    const rewritten = steps.flatMap(({ current: row, fields }) => (row && fields.length > 0 ? [row.id] : []));
    await freeRoutes(manager, rewritten);
    for (const { current: row, judged, fields } of sorted) {
      if (!row) await masters.insert(manager, caller, appId, judged);
      else if (fields.length > 0) await masters.replace(manager, caller, row, judged);
    }
  }

  return {
    /** @throws REQUEST_INVALID where the document would be larger than ANSWER_MAX_BYTES, and what `reserve` throws */
    async export(appId: number, reserve: Reserve = async () => undefined): Promise<TransferDocument> {
      const [{ bytes }] = (await rows<{ bytes: number }>(db, EXPORTED_BYTES, [appId])) as [{ bytes: number }];
      if (bytes > ANSWER_MAX_BYTES) {
        const most = `an export holds at most ${ANSWER_MAX_BYTES / 2 ** 20} MB`;
        throw new ActionError("REQUEST_INVALID", `${most}, the app's actions are larger: list them page by page`);
      }
      await reserve(bytes);
      const found = await db.getRepository(ActionRow).findBy({ appId, actionVersion: "v3", masterId: IsNull() });
      const actions = found.map((row) => ({ ...NO_LIMITS, ...inputOf(row), ...exportedAssets(row) }));
      actions.sort((a, b) => (a.name < b.name ? -1 : 1));
      return { format: TRANSFER_FORMAT, actions };
    },

    /**
     * Creates the actions whose names are new, updates those that are there (omitted properties unchanged), leaves all others
     * alone: all of the document or nothing. A dry run writes nothing and tells faults in its report.
     * @throws REQUEST_INVALID with `faults`, NAME_ALREADY_EXISTS when another request took a name meanwhile
     */
    async import(caller: Caller, appId: number, document: unknown, dryRun: boolean): Promise<ImportReport> {
      const entries = await resolvedAhead({ caller, appId }, entriesOf(document));
      return db.transaction(async (manager) => {
        const plan = await planOf(manager, appId, entries);
        if (plan.faults.length === 0) refuseUnknownFields(document, DOCUMENT_SHAPE);
        else if (!dryRun) throw refusalOf(plan);
        if (dryRun) return reportOf(plan, true);
        await apply(manager, caller, appId, plan);
        return reportOf(plan, false);
      });
    },
  };
}
