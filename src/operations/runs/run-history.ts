/** The ledger as its readers see it: an app's runs and skipped ticks, and a past run's payload run again. */
import type { DataSource } from "typeorm";
import type { Copy, Environment, TriggerType } from "../../data/action-types.js";
import { rows } from "../../data/database.js";
import { RUN_STATES, type RunState } from "../../data/run.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import { described, isObject } from "../../rules/described.js";
import { optionalId } from "../../rules/fields.js";
import { page } from "../../rules/page.js";
import type { Runs } from "./runs.js";

/** A run, or a tick that became none. Times are ISO 8601. */
export interface RunSummary {
  id: number;
  actionId: number;
  copy: Copy;
  trigger: TriggerType;
  state: RunState;
  /** The scheduled moment; null for other triggers. */
  tick: string | null;
  /** How many ticks, from `tick` on, this entry stands for: more than one only after a long pause. */
  tickCount: number;
  /** Why it was skipped. */
  reason: string | null;
  queuedAt: string;
  startedAt: string | null;
  finishedAt: string | null;
  logId: number | null;
  eventId: number | null;
  causeRunId: number | null;
  chainId: number | null;
  depth: number;
  replayOf: number | null;
}

export interface RunFilter {
  /** Either copy's id stands for both. */
  actionId?: unknown;
  state?: unknown;
  limit?: unknown;
  offset?: unknown;
}

type Dated = "tick" | "queuedAt" | "startedAt" | "finishedAt";
type SummaryRow = Omit<RunSummary, Dated> & Record<Dated, Date | null>;

const iso = (date: Date | null): string | null => date?.toISOString() ?? null;
const toSummary = (row: SummaryRow): RunSummary => ({
  ...row,
  tick: iso(row.tick),
  queuedAt: iso(row.queuedAt)!,
  startedAt: iso(row.startedAt),
  finishedAt: iso(row.finishedAt),
});

const SUMMARY = `
  run.id, action_id AS "actionId", copy, trigger, state, tick, tick_count AS "tickCount", reason,
  queued_at AS "queuedAt", started_at AS "startedAt", finished_at AS "finishedAt",
  (SELECT id FROM execution_log WHERE run_id = run.id) AS "logId", event_id AS "eventId",
  cause_run_id AS "causeRunId", chain_id AS "chainId", depth, replay_of AS "replayOf"`;

const MATCHING = `
  run.app_id = $1 AND ($3::text IS NULL OR run.state = $3)
  AND ($2::bigint IS NULL OR run.action_id = $2 OR run.action_id IN (
    SELECT kin.id FROM action self JOIN action kin ON coalesce(kin.master_id, kin.id) = coalesce(self.master_id, self.id)
     WHERE self.id = $2))`;

/* The copy of a run's family that the replay runs; a version belongs to the master. */
const REPLAYED = `
  SELECT svc_run_payload(run.payload, run.event_id) AS payload, run.copy, target.id AS "actionId", target.active, target.environment,
         version.id AS "versionId", version.data AS version
    FROM run
    LEFT JOIN action self ON self.id = run.action_id
    LEFT JOIN action target ON coalesce(target.master_id, target.id) = coalesce(self.master_id, self.id)
         AND (target.master_id IS NULL) = (coalesce($3, run.copy) = 'master')
    LEFT JOIN action_version version ON version.id = $4 AND version.action_id = target.id
   WHERE run.app_id = $1 AND run.id = $2`;

interface ReplayedRow {
  payload: string;
  copy: Copy;
  actionId: number | null;
  active: boolean;
  environment: Environment;
  versionId: number | null;
  /** Its fields are read here: PostgreSQL's ->> refuses JSON that holds \u0000 anywhere. */
  version: { environment: Environment } | null;
}

/** What a replay runs; at most one of the two is given. */
export interface ReplayOptions {
  copy?: unknown;
  versionId?: unknown;
}

function oneOf<T extends string>(value: unknown, name: string, allowed: readonly T[]): T | null {
  if (value === undefined || value === null) return null;
  if ((allowed as readonly unknown[]).includes(value)) return value as T;
  throw new ActionError("REQUEST_INVALID", `${name} must be one of ${allowed.join(", ")}`);
}

function replayOptions(input: unknown): ReplayOptions {
  if (input === undefined || input === null) return {};
  if (isObject(input)) return input;
  throw new ActionError("REQUEST_INVALID", `options must be an object; ${described(input)} came`);
}

export type RunHistory = ReturnType<typeof createRunHistory>;

export function createRunHistory({ db, runs }: { db: DataSource; runs: Runs }) {
  async function findReplayed(appId: number, runId: number, copy: Copy | null, versionId: number | null) {
    const storable = Number.isSafeInteger(runId) && runId > 0;
    const [found] = storable ? await rows<ReplayedRow>(db, REPLAYED, [appId, runId, copy, versionId]) : [];
    if (!found) throw new ActionError("RUN_NOT_FOUND");
    if (found.actionId === null) throw new ActionError("ACTION_NOT_FOUND", "the action of that run has no such copy");
    if (versionId !== null && found.versionId === null) throw new ActionError("VERSION_NOT_FOUND");
    const { environment } = found.version ?? found;
    if (environment === "client") throw new ActionError("CLIENT_ACTION_NOT_RUNNABLE");
    if (!found.active) throw new ActionError("ACTION_INACTIVE");
    return { ...found, actionId: found.actionId };
  }

  return {
    /** The app's runs and skipped ticks, most recent first. @throws REQUEST_INVALID */
    async list(
      appId: number,
      filter: RunFilter,
    ): Promise<{ runs: RunSummary[]; pagination: { total: number; hasMore: boolean } }> {
      const { limit, offset } = page(filter);
      const matching = [appId, optionalId(filter.actionId, "actionId"), oneOf(filter.state, "state", RUN_STATES)];
      const [total] = await rows<{ count: number }>(db, `SELECT count(*) FROM run WHERE ${MATCHING}`, matching);
      const found = await rows<SummaryRow>(
        db,
        `SELECT ${SUMMARY} FROM run WHERE ${MATCHING} ORDER BY run.id DESC LIMIT $4 OFFSET $5`,
        [...matching, limit, offset],
      );
      const { count } = total!;
      return { runs: found.map(toSummary), pagination: { total: count, hasMore: offset + found.length < count } };
    },

    /** One run, or skipped tick. @throws RUN_NOT_FOUND */
    async get(appId: number, runId: number): Promise<RunSummary> {
      const storable = Number.isSafeInteger(runId) && runId > 0;
      const sql = `SELECT ${SUMMARY} FROM run WHERE run.app_id = $1 AND run.id = $2`;
      const [found] = storable ? await rows<SummaryRow>(db, sql, [appId, runId]) : [];
      if (!found) throw new ActionError("RUN_NOT_FOUND");
      return toSummary(found);
    },

    /**
     * Runs a past run's payload again: the copy that ran, unless another or a version is named. A version's code runs as the master
     * does, without being published.
     * @throws RUN_NOT_FOUND, ACTION_NOT_FOUND, VERSION_NOT_FOUND, CLIENT_ACTION_NOT_RUNNABLE, ACTION_INACTIVE, REQUEST_INVALID
     */
    async replay(caller: Caller, appId: number, runId: number, input: unknown): Promise<{ runId: number }> {
      const options = replayOptions(input);
      const versionId = optionalId(options.versionId, "versionId");
      const wanted = oneOf<Copy>(options.copy, "copy", ["master", "production"]);
      if (versionId !== null && wanted === "production") {
        throw new ActionError("REQUEST_INVALID", "copy must not be production where versionId is given");
      }
      const asked = versionId === null ? wanted : "master";
      const { actionId, payload, copy } = await findReplayed(appId, runId, asked, versionId);
      const { personId, credentialId } = caller;
      return runs.submit({
        appId,
        actionId,
        copy: asked ?? copy,
        trigger: "manual",
        payload,
        personId,
        credentialId,
        idempotencyKey: null,
        replayOf: runId,
        versionId,
      });
    },
  };
}
