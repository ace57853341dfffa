/** SQL that finds the action of a run and inserts its row, in one statement. A repeated idempotency key returns the first run instead. */
import type { RunWaitReason, Trigger } from "../../data/action-types.js";
import { type Db, queryPreparedRows, rows, type SqlClient } from "../../data/database.js";
import { RUN_TRANSITIONS } from "../../data/run.js";
import { ActionError } from "../../errors.js";
import { IDEMPOTENCY_KEY_LIFETIME_HOURS } from "../../limits.js";
import { getReferenceSqlParameters, type IdOrName } from "../../rules/reference.js";
import { createOtherRunnerExistsSql, QUEUED_RUN_CHANNEL } from "../records/queue-limits.js";
import { type CallerActionAccess, createStoredIdempotencyKey } from "./run-access.js";
import type { NewRun, RunCode, RunRecord } from "./run-types.js";

type OnDemandTrigger = "manual" | "http";

/** The message is the same if a draft exists, because visitors must not learn about drafts. */
const NO_ACTION_MESSAGE = "the app has no action with this ID or name, or the action is not published";

interface CalledAction extends RunCode {
  id: number;
  active: boolean;
  actionVersion: string;
  triggers: Trigger[];
  waitsFor: RunWaitReason | null;
  /** JSON text; null if the action has no access rule. */
  access: string | null;
  lacksPublishedApp: boolean;
}

/** $1 is the app's ID, $2 `master` (draft) or `production` (live). The ID of a draft also finds its live version. */
const createFindActionSql = (name: string, id: string, needsPublishedApp: string) => `
  SELECT id, name, active, code, dependencies, assets, environment, action_version AS "actionVersion", triggers,
         timeout_ms AS "timeoutMs", integration_origins AS "integrationOrigins", source->>'map' AS map, access::text AS access,
         CASE WHEN (debounce->>'manual')::boolean THEN 'debounce' WHEN concurrency IS NOT NULL THEN 'concurrency' END AS "waitsFor",
         ${needsPublishedApp}::boolean AND (SELECT published_at IS NULL FROM app WHERE app.id = action.app_id) AS "lacksPublishedApp"
    FROM action
   WHERE id = coalesce(
     (SELECT CASE WHEN $2::text = 'master' THEN family.id
                  ELSE (SELECT id FROM action WHERE master_id = family.id) END
        FROM (SELECT coalesce(master_id, id) AS id FROM action WHERE app_id = $1::bigint AND id = ${id}::bigint) AS family),
     (SELECT id FROM action
       WHERE app_id = $1::bigint AND name = ${name}::text AND (master_id IS NULL) = ($2::text = 'master')))`;

/** SQL condition: `checkRunnable` accepts the action, and its access rule (if any) is in `granted` (SQL parameter with `metRules`). */
const createRunnableConditionSql = (granted: string, trigger: string) => `
  (access IS NULL OR ${granted}::text[] IS NULL OR access = ANY (${granted}::text[])) AND active AND NOT "lacksPublishedApp" AND environment <> 'client' AND "actionVersion" = 'v3'
  AND EXISTS (SELECT FROM json_array_elements(triggers) AS entry WHERE entry->>'trigger' = ${trigger}::text)`;

/** Returns true if it added a rule to `metRules`: then repeat the SQL statement. @throws ActionError ACTION_ACCESS_DENIED */
async function checkActionAccess(action: CalledAction | undefined, access: CallerActionAccess): Promise<boolean> {
  if (!action || action.lacksPublishedApp || action.actionVersion !== "v3") return false;
  const { metRules } = access;
  if (action.access === null || metRules === null || metRules.has(action.access)) return false;
  if (!(await access.meetsRule(action.access))) throw new ActionError("ACTION_ACCESS_DENIED");
  metRules.add(action.access);
  return true;
}

/** Returns the action if it can run, otherwise throws an ActionError. Does not check the access rule: first call `checkActionAccess`. */
function checkRunnable<Named extends CalledAction>(action: Named | undefined, trigger: OnDemandTrigger): Named {
  if (!action) throw new ActionError("ACTION_NOT_FOUND", NO_ACTION_MESSAGE);
  if (action.lacksPublishedApp) throw new ActionError("APP_NOT_PUBLISHED");
  if (action.actionVersion !== "v3") throw new ActionError("ACTION_NOT_V3");
  if (action.environment === "client") throw new ActionError("CLIENT_ACTION_NOT_RUNNABLE");
  if (!action.active) throw new ActionError("ACTION_INACTIVE");
  if (action.triggers.some((entry) => entry.trigger === trigger)) return action;
  const message = `the action ${action.name} has no "${trigger}" trigger, so this request cannot run it; add this trigger to the action`;
  throw new ActionError("TRIGGER_NOT_ALLOWED", message);
}

export type NewOnDemandRun = Omit<NewRun, "actionId" | "code" | "trigger" | "replayOf" | "versionId" | "waitsFor"> & {
  ref: IdOrName;
  trigger: OnDemandTrigger;
  /** Hash of the event ID that an HTTP trigger received. A repeated event inserts no row and returns the first run. */
  eventKey?: Buffer | null;
  needsPublishedApp: boolean;
  access: CallerActionAccess;
};

export interface InsertedRun {
  id: number;
  /** True if an earlier request with the same key inserted the run. */
  isRepeated: boolean;
}

export interface EnqueuedRow extends InsertedRun {
  /** Null for a debounced run, for a run that was inserted by action ID, and for the run of an earlier request with the same key. */
  run: RunRecord | null;
  waitsFor: RunWaitReason | null;
}

export const createSkippedError = (runId: number, reason: string) =>
  new ActionError("RUN_SKIPPED", `the run did not start: ${reason}`, { runId });

/**
 * Keys that make a run unique: a caller's idempotency key, or an HTTP trigger's event ID. `columns` and `values` are SQL for the row of a
 * key. If `isRunGone` is true, a request with the key starts another run: the key's run was deleted, or `retryFailed` ($4) allows it.
 */
const UNIQUE_KEY_KINDS = {
  run_key: {
    table: "run_key",
    columns: "action_id, credential_id, key",
    values: "$5::bigint, $6::text",
    matches: "action_id = $1 AND credential_id = $2 AND key = $3",
    isRunGone:
      "NOT EXISTS (SELECT FROM run WHERE run.id = run_key.run_id AND NOT ($4 AND state IN ('failed', 'cancelled', 'skipped')))",
  },
  http_event: {
    table: "http_event",
    columns: "action_id, key",
    values: "$17::bytea",
    matches: "action_id = $1 AND key = $2",
    isRunGone: "NOT EXISTS (SELECT FROM run WHERE run.id = http_event.run_id)",
  },
} as const;
type UniqueKeyKind = (typeof UNIQUE_KEY_KINDS)[keyof typeof UNIQUE_KEY_KINDS];

const createInsertKeySql = ({ table, columns, values }: UniqueKeyKind, source: string, action: string) => `
  key AS (
    INSERT INTO ${table} (${columns}, run_id) SELECT ${action}, ${values}, nextval('run_id_seq') FROM ${source}
    ON CONFLICT (${columns}) DO NOTHING RETURNING run_id),`;

/** `listCommonParameters` returns the values of $1 to $9. `source` is SQL that selects one row, or no row to insert nothing. */
const createInsertRunSql = (kind: UniqueKeyKind | null, source: string, action: string, otherValues: string) => `
  ${kind ? createInsertKeySql(kind, source, action) : ""}
  inserted AS (
    INSERT INTO run (id, app_id, copy, payload, person_id, credential_id, idempotency_key, state, holder, started_at,
                     cause_run_id, chain_id, depth, traceparent, action_id, trigger, replay_of, version_id, waits_for)
    SELECT ${kind ? "key.run_id" : "nextval('run_id_seq')"}, $1::bigint, $2::text, $3::json, $4::bigint, $5::bigint, $6::text,
           CASE WHEN $7::uuid IS NULL THEN '${RUN_TRANSITIONS.queue.to}' ELSE '${RUN_TRANSITIONS.start.to}' END, $7::uuid,
           CASE WHEN $7::uuid IS NULL THEN NULL ELSE now() END,
           cause.id, coalesce(cause.chain_id, cause.id), coalesce(cause.depth + 1, 0), $9::text, ${action}, ${otherValues}
      FROM ${source}${kind ? " CROSS JOIN key" : ""} LEFT JOIN run AS cause ON cause.id = $8
    RETURNING id, state, waits_for)`;
const createNotifyQueuedSql = (condition: string) => `
  CASE WHEN inserted.state = '${RUN_TRANSITIONS.queue.to}' AND inserted.waits_for IS NULL AND ${condition}
       THEN pg_notify('${QUEUED_RUN_CHANNEL}', ($1::bigint)::text) END`;

/** `insertRunByActionId` passes the values of $10 to $14. */
const createInsertByActionIdSql = (kind: UniqueKeyKind | null) => `
  WITH ${createInsertRunSql(kind, "(SELECT) AS row", "$10::bigint", "$11, $12::bigint, $13::bigint, $14::text")}
  SELECT id, ${createNotifyQueuedSql("true")} FROM inserted`;

/** Inserts no debounced run. Sends no notification if only the process $16 executes runs: it looks for the queued run itself. */
const createInsertOnDemandSql = (kind: UniqueKeyKind | null) => `
  WITH target AS (${createFindActionSql("$10", "$11", "$12")}),
  ${createInsertRunSql(
    kind,
    `(SELECT id AS target_id FROM target WHERE $15::boolean AND ${createRunnableConditionSql("$13", "$14")}
             AND ("waitsFor" IS NULL OR "waitsFor" = 'concurrency' AND $7::uuid IS NULL)) AS runnable`,
    "runnable.target_id",
    `$14::text, NULL::bigint, NULL::bigint, (SELECT "waitsFor" FROM target)`,
  )}
  SELECT target.*, inserted.id AS "runId", app.secrets_version AS "secretsVersion",
         ${createNotifyQueuedSql(createOtherRunnerExistsSql("$16::uuid"))}
    FROM target JOIN app ON app.id = $1 LEFT JOIN inserted ON true`;

const INSERT_BY_ACTION_ID = {
  none: createInsertByActionIdSql(null),
  run_key: createInsertByActionIdSql(UNIQUE_KEY_KINDS.run_key),
};
const INSERT_ON_DEMAND = {
  none: createInsertOnDemandSql(null),
  run_key: createInsertOnDemandSql(UNIQUE_KEY_KINDS.run_key),
  http_event: createInsertOnDemandSql(UNIQUE_KEY_KINDS.http_event),
};

const createDeleteOldKeysSql = ({ table, matches, isRunGone }: UniqueKeyKind) => `
  DELETE FROM ${table} WHERE ${matches} AND (created_at < now() - interval '${IDEMPOTENCY_KEY_LIFETIME_HOURS} hours' OR ${isRunGone})`;
const createSelectFirstRunSql = ({ table, matches }: UniqueKeyKind) => `
  SELECT keyed.run_id AS id, run.reason AS "skipReason" FROM (SELECT run_id FROM ${table} WHERE ${matches}) AS keyed
    LEFT JOIN run ON run.id = keyed.run_id`;

const SELECT_DEBOUNCED_RUN =
  "SELECT run_id AS id FROM debounced_run WHERE action_id = $1 AND sender = coalesce('p' || $2::bigint, 'c' || $3::bigint, '')";

type KeyedRun = Pick<NewRun, "credentialId" | "idempotencyKey" | "retryFailed"> & Pick<NewOnDemandRun, "eventKey">;

function chooseUniqueKeyKind({ eventKey, credentialId, idempotencyKey }: KeyedRun): keyof typeof INSERT_ON_DEMAND {
  if (eventKey) return "http_event";
  return credentialId !== null && idempotencyKey !== null ? "run_key" : "none";
}

/**
 * First deletes the key if it has expired or its run is gone. Then returns the run that an earlier request with the same key inserted, or
 * null. @throws RUN_SKIPPED if this run was skipped; not for an event key
 */
async function findFirstRun(executor: SqlClient, actionId: number, run: KeyedRun): Promise<InsertedRun | null> {
  const { eventKey, credentialId, idempotencyKey, retryFailed = false } = run;
  const kind = UNIQUE_KEY_KINDS[eventKey ? "http_event" : "run_key"];
  const key = eventKey ? [actionId, eventKey] : [actionId, credentialId, idempotencyKey];
  await executor.query(createDeleteOldKeysSql(kind), eventKey ? key : [...key, retryFailed]);
  const [first] = await rows<{ id: number; skipReason: string | null }>(executor, createSelectFirstRunSql(kind), key);
  if (!first) return null;
  // For a repeated event, the HTTP trigger reads the first run's outcome, so it needs no reason for a skip.
  if (!eventKey && first.skipReason !== null) throw createSkippedError(first.id, first.skipReason);
  return { id: first.id, isRepeated: true };
}

export async function deleteEventKey(executor: SqlClient, eventKey: Buffer, runId: number): Promise<void> {
  const sql =
    "DELETE FROM http_event WHERE action_id = (SELECT action_id FROM run WHERE id = $2) AND key = $1 AND run_id = $2";
  await executor.query(sql, [eventKey, runId]);
}

function listCommonParameters(
  run: Pick<NewRun, keyof NewOnDemandRun & keyof NewRun>,
  holder: string | null,
): unknown[] {
  const { appId, copy, payload, personId, credentialId, idempotencyKey, causeRunId = null, traceparent = null } = run;
  return [appId, copy, payload, personId, credentialId, idempotencyKey, holder, causeRunId, traceparent];
}

/** Returns null if the run's key is taken, or if the database replaces the payload of a queued debounced run instead. */
async function tryInsertByActionId(
  executor: SqlClient,
  run: NewRun,
  holder: string | null,
): Promise<InsertedRun | null> {
  const { actionId, trigger, replayOf = null, versionId = null, waitsFor = null } = run;
  const values = [...listCommonParameters(run, holder), actionId, trigger, replayOf, versionId, waitsFor];
  const kind = run.credentialId !== null && run.idempotencyKey !== null ? "run_key" : "none";
  const sql = INSERT_BY_ACTION_ID[kind];
  const [inserted] = await queryPreparedRows<{ id: number }>(executor, `insert-run-${kind}`, sql, values);
  return inserted ? { id: inserted.id, isRepeated: false } : null;
}

/** @param holder process that executes the run now; null to queue the run */
export async function insertRunByActionId(
  executor: SqlClient,
  run: NewRun,
  holder: string | null,
): Promise<InsertedRun> {
  for (;;) {
    const insertedOrFirst =
      (await tryInsertByActionId(executor, run, holder)) ?? (await findFirstRun(executor, run.actionId, run));
    if (insertedOrFirst) return insertedOrFirst;
  }
}

/** If a debounced run of the same action and caller is queued, replaces its payload instead. Call this function in a transaction. */
export async function insertDebouncedRun(manager: SqlClient, run: NewRun): Promise<InsertedRun> {
  const inserted = await tryInsertByActionId(manager, { ...run, idempotencyKey: null, waitsFor: "debounce" }, null);
  if (inserted) return inserted;
  const { actionId, personId, credentialId } = run;
  const [queued] = await rows<{ id: number }>(manager, SELECT_DEBOUNCED_RUN, [actionId, personId, credentialId]);
  return { id: queued!.id, isRepeated: false };
}

type OnDemandRow = CalledAction & { secretsVersion: number; runId: number | null };

/**
 * Inserts nothing and returns null if `holder` is set but the run must wait, or if `mayInsert` is false and the action can run.
 * @param processId ID of this process @param holder process that executes the run now; null to queue the run
 * @throws ACTION_ACCESS_DENIED, RUN_SKIPPED, and the errors of `checkRunnable`
 */
export async function insertOnDemandRun(
  db: Db,
  newRun: NewOnDemandRun,
  processId: string,
  holder: string | null,
  mayInsert = true,
): Promise<EnqueuedRow | null> {
  const { access, ref, needsPublishedApp, trigger, eventKey = null } = newRun;
  const kind = chooseUniqueKeyKind(newRun);
  for (;;) {
    const run = { ...newRun, idempotencyKey: createStoredIdempotencyKey(access, newRun.idempotencyKey) };
    const values = [
      ...listCommonParameters(run, holder),
      ...getReferenceSqlParameters(ref),
      needsPublishedApp,
      access.metRules && [...access.metRules],
      ...[trigger, mayInsert, processId],
      ...(eventKey === null ? [] : [eventKey]),
    ];
    const [row] = await queryPreparedRows<OnDemandRow>(db, `insert-named-run-${kind}`, INSERT_ON_DEMAND[kind], values);
    if (await checkActionAccess(row, access)) continue;
    const action = checkRunnable(row, trigger);
    const { id: actionId, runId: id, waitsFor, secretsVersion } = action;
    if (id !== null) {
      const inserted = { ...run, id, actionId, startedAt: new Date(), secretsVersion, code: action };
      return { id, isRepeated: false, run: inserted, waitsFor };
    }
    if (!mayInsert || (waitsFor !== null && holder !== null)) return null;
    if (waitsFor === "debounce") {
      const debounced = await db.transaction((manager) => insertDebouncedRun(manager, { ...newRun, actionId }));
      return { ...debounced, run: null, waitsFor };
    }
    if (kind === "none")
      throw new Error("internal error: the database did not insert the run, although the action can be run");
    const first = await findFirstRun(db, actionId, run);
    if (first) return { ...first, run: null, waitsFor: null };
  }
}
