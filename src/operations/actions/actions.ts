/** Operations on drafts for authors: list, get, create, update and remove. */
import { type EntityManager, In } from "typeorm";
import { ActionRow } from "../../data/action.js";
import { type Db, rows } from "../../data/database.js";
import type { Caller } from "../../rules/access.js";
import { foldCase, foldCaseSql } from "../../rules/comparable-text.js";
import {
  parseLimitAndOffset,
  type ReserveResponseBytes,
  type SizedRow,
  selectIdsThatFitOnPage,
} from "../../rules/page.js";
import { NO_RESOLVED_DEPENDENCIES } from "../packages/packages.js";
import { recordChange } from "../records/audit.js";
import { runAppChangeInSlot, transactWithAppLock } from "../settings/app-lock.js";
import {
  type Action,
  type ConvertActionRow,
  type DraftChangeTarget,
  type LockDraft,
  readDraft,
  requireAction,
} from "./action-rows.js";
import type { ActionValidation } from "./action-validation.js";
import type { DraftWriter } from "./draft-writer.js";
import { runOncePerIdempotencyKey } from "./idempotency.js";

/**
 * Summary of a draft's live version for lists of drafts. `updatedAt` is the time at which the draft was last published. Times are ISO 8601.
 */
export interface LiveVersionSummary {
  masterId: number;
  id: number;
  active: boolean;
  lastRunAt: string | null;
  updatedAt: string;
}

/** Maximum number of search words; a search ignores all further words. */
const SEARCH_MAX_WORDS = 10;

/** SQL condition for the app's drafts whose name and description together contain every search word, in upper or lower case. */
const IS_MATCHING_DRAFT_OF_APP = `app_id = $1 AND master_id IS NULL AND action_version = 'v3' AND NOT EXISTS (
  SELECT 1 FROM unnest($2::text[]) word WHERE strpos(${foldCaseSql("(name || ' ' || coalesce(description, ''))")}, word) = 0)`;

interface ActionsOptions {
  db: Db;
  validation: ActionValidation;
  draftWriter: DraftWriter;
  convertRow: ConvertActionRow;
  lockDraft: LockDraft;
}

export class Actions {
  constructor(private readonly options: ActionsOptions) {}

  /**
   * Lists the app's drafts, the newest first, without legacy actions. Normally returns `limit` drafts. Returns fewer, with `hasMore` true,
   * if `limit` drafts would exceed LIST_PAGE_MAX_BYTES. Every word in `search` must be in the draft's name or description.
   * @param reserve reserves memory for the response
   * @throws ActionError REQUEST_INVALID, and the errors of `reserve`
   */
  async list(
    appId: number,
    options: { limit?: unknown; offset?: unknown; search?: string | null | undefined },
    reserve?: ReserveResponseBytes,
  ): Promise<{ actions: Action[]; pagination: { total: number; hasMore: boolean } }> {
    const { db, convertRow } = this.options;
    const { limit, offset } = parseLimitAndOffset(options);
    const searchWords = foldCase(options.search ?? "")
      .split(/\s+/)
      .filter(Boolean);
    const parameters = [appId, searchWords.slice(0, SEARCH_MAX_WORDS)];
    const [count] = await rows<{ total: number }>(
      db,
      `SELECT count(*) AS total FROM action WHERE ${IS_MATCHING_DRAFT_OF_APP}`,
      parameters,
    );
    const actionSizes = await rows<SizedRow>(
      db,
      `SELECT id, octet_length(code) + octet_length(triggers::text) + coalesce(octet_length(source::text), 0) AS bytes FROM action
          WHERE ${IS_MATCHING_DRAFT_OF_APP} ORDER BY id DESC LIMIT $3 OFFSET $4`,
      [...parameters, limit, offset],
    );
    const { total } = count!;
    const pageIds = In(await selectIdsThatFitOnPage(actionSizes, reserve));
    const actionRows = await db.getRepository(ActionRow).find({ where: { id: pageIds }, order: { id: "DESC" } });
    return {
      actions: actionRows.map(convertRow),
      pagination: { total, hasMore: offset + actionRows.length < total },
    };
  }

  /** Returns the live versions of the drafts with these IDs. A draft that is not published has no live version. */
  async listPublished(masterIds: readonly number[]): Promise<LiveVersionSummary[]> {
    const actionRows = await this.options.db.getRepository(ActionRow).find({
      select: { id: true, masterId: true, active: true, lastRunAt: true, updatedAt: true },
      where: { masterId: In([...masterIds]) },
    });
    return actionRows.map(({ id, masterId, active, lastRunAt, updatedAt }) => ({
      masterId: masterId!,
      id,
      active,
      lastRunAt: lastRunAt?.toISOString() ?? null,
      updatedAt: updatedAt.toISOString(),
    }));
  }

  /** Returns the draft or live version with this ID. @throws ACTION_NOT_FOUND, ACTION_NOT_V3 */
  async get(appId: number, id: number): Promise<Action> {
    const { db, convertRow } = this.options;
    return convertRow(await requireAction(db.manager, appId, id));
  }

  /**
   * Creates a draft.
   * @param idempotencyKey if the same credential sent this request with this key before, `create` returns the response of that request
   * @throws the error statuses of invalid fields (rules/validation-table.ts), NAME_ALREADY_EXISTS, DEPENDENCY_UNRESOLVED; REQUEST_INVALID
   *   if the app's actions together are too large
   */
  async create(caller: Caller, appId: number, data: unknown, idempotencyKey: string | null = null): Promise<Action> {
    const { db, validation, draftWriter, convertRow } = this.options;
    const resolvedPackages = await validation.prepare({ caller, appId }, data, null);
    const validatedAction = await validation.validateCreate(db.manager, appId, data, resolvedPackages);
    const idempotentRequest = { appId, key: idempotencyKey, request: validatedAction.input };
    return transactWithAppLock(db, appId, async (manager) => {
      return runOncePerIdempotencyKey(manager, caller, idempotentRequest, async () =>
        convertRow(await draftWriter.insert(manager, caller, appId, validatedAction)),
      );
    });
  }

  /**
   * Changes only those fields of a draft that `data` contains.
   * @throws the errors of `create`; CANNOT_UPDATE_PRODUCTION, ACTION_NOT_FOUND, ACTION_NOT_V3, ACTION_CHANGED
   */
  async update(caller: Caller, target: DraftChangeTarget, data: unknown): Promise<Action> {
    const { db, validation, draftWriter, convertRow, lockDraft } = this.options;
    const { appId } = target;
    const stored = await readDraft(db, target);
    const resolvedPackages = stored
      ? await validation.prepare({ caller, appId }, data, stored)
      : NO_RESOLVED_DEPENDENCIES;
    return transactWithAppLock(db, appId, async (manager) => {
      const currentDraft = await lockDraft(manager, target, "CANNOT_UPDATE_PRODUCTION");
      const validatedAction = await validation.validateUpdate(manager, currentDraft, data, resolvedPackages);
      return convertRow(await draftWriter.replace(manager, caller, currentDraft, validatedAction));
    });
  }

  /**
   * Deletes a draft with its live version and its saved versions.
   * @throws CANNOT_DELETE_PRODUCTION, ACTION_NOT_FOUND, ACTION_NOT_V3, ACTION_CHANGED
   */
  async remove(caller: Caller, target: DraftChangeTarget): Promise<void> {
    const { db, lockDraft } = this.options;
    const { appId, id } = target;
    const removeDraft = async (manager: EntityManager) => {
      const draftRow = await lockDraft(manager, target, "CANNOT_DELETE_PRODUCTION");
      await manager.delete(ActionRow, id);
      const { name } = draftRow;
      await recordChange(manager, caller, { appId, type: "appAction.v3.remove", actionId: id, data: { name } });
    };
    await runAppChangeInSlot(db, appId, () => db.transaction(removeDraft));
  }
}
