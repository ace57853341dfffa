/**
 * How a run comes into the ledger: its one row, written before anything comes of it, whether an action is named that is yet to be found or one that
 * was found before. One statement each. Knows SQL, not who asks.
 */
import { type Executor, preparedRows, rows } from "../../data/database.js";
import { IDEMPOTENCY_HOURS } from "../../limits.js";
import { type Reference, referenceParameters } from "../../rules/reference.js";
import { QUEUED_CHANNEL } from "../records/queue-room.js";
import { grantedParameter, keyOfUser, type RunAccess } from "./run-access.js";
import type { NewRun } from "./run-facts.js";
import {
  FIND_TARGET,
  judgeAccess,
  type OnDemandTrigger,
  refuseUnlessRunnable,
  runnable,
  type Target,
} from "./targets.js";

/** A run on demand of an action that the caller names. */
export type AskedRun = Omit<NewRun, "actionId" | "code" | "trigger" | "replayOf" | "versionId" | "waitsFor"> & {
  ref: Reference;
  /** Kind of trigger that the action must have; the run's own. */
  trigger: OnDemandTrigger;
  /** Digest of the event that an HTTP trigger has received: a repeat gets the first event's run. */
  eventKey?: Buffer | null;
  /** True if an unpublished app pauses this caller's runs: those of live tokens. */
  needsApp: boolean;
  access: RunAccess;
  /** False if the process that queues it claims it itself and sends the notice later. */
  isAnnounced?: boolean;
};

/** The first run of that idempotency key, where it is `repeated`: then nothing was written. */
export interface Accepted {
  id: number;
  repeated: boolean;
  /** Of a repeated one that was skipped: why. */
  skipped?: string;
}

/**
 * As accepted of an action that was named: what is to run, and the number of the last change of its app's secrets. `id` null: nothing was
 * written, since the run has to wait for something before it starts, and is to be queued.
 */
export interface AcceptedTarget extends Omit<Accepted, "id"> {
  id: number | null;
  target: Target;
  secretsVersion: number;
}

/** Table in which a run's key stands, if it has one: by its credential, or by the event that a trigger has received. */
type KeyTable = "run_key" | "http_event" | null;

const KEY: Record<NonNullable<KeyTable>, (source: string, action: string) => string> = {
  run_key: (source, action) => `key AS (
    INSERT INTO run_key (action_id, credential_id, key, run_id)
    SELECT ${action}, $5::bigint, $6::text, nextval('run_id_seq') FROM ${source}
    ON CONFLICT (action_id, credential_id, key) DO NOTHING RETURNING run_id),`,
  http_event: (source, action) => `key AS (
    INSERT INTO http_event (action_id, key, run_id)
    SELECT ${action}, $15::bytea, nextval('run_id_seq') FROM ${source}
    ON CONFLICT (action_id, key) DO NOTHING RETURNING run_id),`,
};

/* $1 app, $2 copy, $3 payload, $4 person, $5 credential, $6 idempotency key, $7 the holder that starts it at once, or null to queue it,
 * $8 cause. `source` is one row or none. The key's row comes first: who does not get it writes no run. */
const insert = (keyed: KeyTable, source: string, action: string, others: string) => `
  ${keyed === null ? "" : KEY[keyed](source, action)}
  accepted AS (
    INSERT INTO run (id, app_id, copy, payload, person_id, credential_id, idempotency_key, state, holder, started_at,
                     cause_run_id, chain_id, depth, action_id, trigger, replay_of, version_id, waits_for)
    SELECT ${keyed ? "key.run_id" : "nextval('run_id_seq')"}, $1::bigint, $2::text, $3::json, $4::bigint, $5::bigint, $6::text,
           CASE WHEN $7::uuid IS NULL THEN 'queued' ELSE 'running' END, $7::uuid,
           CASE WHEN $7::uuid IS NULL THEN NULL ELSE now() END,
           cause.id, coalesce(cause.chain_id, cause.id), coalesce(cause.depth + 1, 0), ${action}, ${others}
      FROM ${source}${keyed ? " CROSS JOIN key" : ""} LEFT JOIN run AS cause ON cause.id = $8
    RETURNING id, state, waits_for)`;
/* Notifies the runners that a run of the app is queued. */
const notifyQueued = (isAnnounced: string) => `
  CASE WHEN accepted.state = 'queued' AND accepted.waits_for IS NULL AND ${isAnnounced} THEN pg_notify('${QUEUED_CHANNEL}', ($1::bigint)::text) END`;

/* $9 action, $10 trigger, $11 the run whose payload it repeats, $12 the version that it runs, $13 what it waits for. */
const accept = (keyed: KeyTable) => `
  WITH ${insert(keyed, "(SELECT) AS one", "$9::bigint", "$10, $11::bigint, $12::bigint, $13::text")}
  SELECT id, ${notifyQueued("true")} FROM accepted`;

/*
 * $9 name, $10 the same as an id or null, $11 whether an unpublished app pauses it, $12 the access values that the caller
 * has, $13 the trigger, $14 whether the runners are notified. One that has to wait for something does not start at once; one
 * that is debounced is written by its action's id, for its payload may become another run's.
 */
const acceptNamed = (keyed: KeyTable) => `
  WITH target AS (${FIND_TARGET("$1", "$2", "$9", "$10", "$11")}),
  ${insert(
    keyed,
    `(SELECT id AS target_id FROM target WHERE ${runnable("$12", "$13")}
             AND ("waitsFor" IS NULL OR "waitsFor" = 'concurrency' AND $7::uuid IS NULL)) AS runnable`,
    "runnable.target_id",
    `$13::text, NULL::bigint, NULL::bigint, (SELECT "waitsFor" FROM target)`,
  )}
  SELECT target.*, accepted.id AS "runId", app.secrets_version AS "secretsVersion", ${notifyQueued("$14::boolean")}
    FROM target JOIN app ON app.id = $1 LEFT JOIN accepted ON true`;

/* A statement for keys and one without: most runs have none, and pay nothing for those that do. */
const [ACCEPT, ACCEPT_KEYED] = [accept(null), accept("run_key")];
const ACCEPT_TARGET = {
  none: acceptNamed(null),
  run_key: acceptNamed("run_key"),
  http_event: acceptNamed("http_event"),
};

/* Of a run that is gone as well: what an app wrote too much of went with its keys. $4: and of one that came to nothing. */
const FORGET_OLD = `
  DELETE FROM run_key WHERE action_id = $1 AND credential_id = $2 AND key = $3
     AND (created_at < now() - interval '${IDEMPOTENCY_HOURS} hours'
          OR NOT EXISTS (SELECT FROM run WHERE run.id = run_key.run_id AND NOT ($4 AND state IN ('failed', 'cancelled', 'skipped'))))`;
const FIRST = `
  SELECT run_key.run_id AS id, run.reason AS skipped FROM run_key LEFT JOIN run ON run.id = run_key.run_id
   WHERE run_key.action_id = $1 AND run_key.credential_id = $2 AND run_key.key = $3`;

/* The run that a debounced one became part of: held by the transaction that added to it. */
const FOLDED =
  "SELECT run_id AS id FROM debounced_run WHERE action_id = $1 AND sender = coalesce('p' || $2::bigint, 'c' || $3::bigint, '')";

type Key = Pick<NewRun, "credentialId" | "idempotencyKey" | "retryFailed">;

/** A key belongs to a credential: nobody else's request can be its repeat. */
const isKeyed = ({ credentialId, idempotencyKey }: Key): boolean => credentialId !== null && idempotencyKey !== null;

/** The run that the key found, or null where that was too long ago and is forgotten now: then the row may be written after all. */
async function firstOf(executor: Executor, actionId: number, run: Key): Promise<Accepted | null> {
  const key = [actionId, run.credentialId, run.idempotencyKey];
  await executor.query(FORGET_OLD, [...key, run.retryFailed ?? false]);
  const [first] = await rows<{ id: number; skipped: string | null }>(executor, FIRST, key);
  return first ? { id: first.id, repeated: true, ...(first.skipped !== null && { skipped: first.skipped }) } : null;
}

const keyTableOf = (run: AskedRun): KeyTable => {
  if (run.eventKey) return "http_event";
  return isKeyed(run) ? "run_key" : null;
};

/* Of an event that is too old, and of one whose run is gone: it was too much for the app's log. */
const FORGET_OLD_EVENT = `
  DELETE FROM http_event WHERE action_id = $1 AND key = $2
     AND (created_at < now() - interval '${IDEMPOTENCY_HOURS} hours' OR NOT EXISTS (SELECT FROM run WHERE run.id = http_event.run_id))`;
const FIRST_OF_EVENT = "SELECT run_id AS id FROM http_event WHERE action_id = $1 AND key = $2";

/** The run of the first event with that key; null if it was too long ago. */
async function firstOfEvent(executor: Executor, actionId: number, eventKey: Buffer): Promise<Accepted | null> {
  await executor.query(FORGET_OLD_EVENT, [actionId, eventKey]);
  const [first] = await rows<{ id: number }>(executor, FIRST_OF_EVENT, [actionId, eventKey]);
  return first ? { id: first.id, repeated: true } : null;
}

/** Forgets that an event led to this run, so that its repeat runs again. */
export async function forgetEvent(executor: Executor, eventKey: Buffer, runId: number): Promise<void> {
  const sql =
    "DELETE FROM http_event WHERE action_id = (SELECT action_id FROM run WHERE id = $2) AND key = $1 AND run_id = $2";
  await executor.query(sql, [eventKey, runId]);
}

function common(run: Pick<NewRun, keyof AskedRun & keyof NewRun>, holder: string | null): unknown[] {
  const { appId, copy, payload, personId, credentialId, idempotencyKey, causeRunId = null } = run;
  return [appId, copy, payload, personId, credentialId, idempotencyKey, holder, causeRunId];
}

/** Writes the run's row, running under `holder` or queued when that is null. */
export async function acceptRun(executor: Executor, run: NewRun, holder: string | null): Promise<Accepted> {
  const { actionId, trigger, replayOf = null, versionId = null, waitsFor = null } = run;
  const values = [...common(run, holder), actionId, trigger, replayOf, versionId, waitsFor];
  const [name, text] = isKeyed(run) ? ["accept-run-keyed", ACCEPT_KEYED] : ["accept-run", ACCEPT];
  for (;;) {
    const [accepted] = await preparedRows<{ id: number }>(executor, name!, text!, values);
    if (accepted) return { id: accepted.id, repeated: false };
    const first = await firstOf(executor, actionId, run);
    if (first) return first;
  }
}

/**
 * Writes the row of a run that is debounced, or gives its payload to the one that waits already. Such a run has no idempotency key: its
 * repeat changes nothing. To be called in a transaction.
 */
export async function acceptDebounced(manager: Executor, run: NewRun): Promise<Accepted> {
  const { actionId, personId, credentialId, trigger } = run;
  const values = [...common({ ...run, idempotencyKey: null }, null), actionId, trigger, null, null, "debounce"];
  const [accepted] = await rows<{ id: number }>(manager, ACCEPT, values);
  if (accepted) return { id: accepted.id, repeated: false };
  const [folded] = await rows<{ id: number }>(manager, FOLDED, [actionId, personId, credentialId]);
  return { id: folded!.id, repeated: false };
}

/**
 * Finds the action and writes the row at once, so that nothing comes between the two.
 * @throws as `findTarget`
 */
export async function acceptTarget(db: Executor, asked: AskedRun, holder: string | null): Promise<AcceptedTarget> {
  const { access, ref, needsApp, trigger, eventKey = null, isAnnounced = true } = asked;
  const keyed = keyTableOf(asked) ?? "none";
  for (;;) {
    const run = { ...asked, idempotencyKey: keyOfUser(access, asked.idempotencyKey) };
    const values = [
      ...[
        ...common(run, holder),
        ...referenceParameters(ref),
        needsApp,
        grantedParameter(access),
        trigger,
        isAnnounced,
      ],
      ...(eventKey === null ? [] : [eventKey]),
    ];
    const [found] = await preparedRows<Target & { runId: number | null; secretsVersion: number }>(
      db,
      keyed === "none" ? "accept-target" : `accept-target-${keyed}`,
      ACCEPT_TARGET[keyed],
      values,
    );
    if (await judgeAccess(found, access)) continue;
    const target = refuseUnlessRunnable(found, trigger);
    const { runId, secretsVersion } = found!;
    if (runId !== null) return { id: runId, repeated: false, target, secretsVersion };
    const isToWait = target.waitsFor === "debounce" || (target.waitsFor !== null && holder !== null);
    if (isToWait) return { id: null, repeated: false, target, secretsVersion };
    if (keyed === "none") throw new Error("a runnable action was not accepted");
    const first = await (eventKey === null ? firstOf(db, target.id, run) : firstOfEvent(db, target.id, eventKey));
    if (first) return { ...first, target, secretsVersion };
  }
}
