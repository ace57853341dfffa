/** Orders the pulls of an app across processes, so that an outdated pull has no effect. Stores which tags were published. */
import { createHash } from "node:crypto";
import type { DataSource, EntityManager } from "typeorm";
import { rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { LastPull } from "./git-connections.js";

/** Maximum number of published tags that are stored for a connection; the newest ones. */
const PUBLISHED_TAGS_MAX = 10_000;

/**
 * SQL of an outcome (LastPull) as it is stored.
 * @param pull SQL of type json: the outcome without its time, which is that of the database in all processes
 */
export const storedPull = (pull: string): string => {
  const fields = ["ref", "commit", "published", "error"].map((name) => `'${name}', ${pull}->'${name}'`).join(", ");
  return `json_build_object(${fields}, 'at', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`;
};

/** Place of one pull in the order of its app. */
export interface PullTurn {
  appId: number;
  /** ID that identifies the connection, because each change of the connection issues another credential, and no ID repeats. */
  credentialId: number | null;
  /** True for tags, which publish. Tags and branches have separate orders. */
  publishes: boolean;
  /** Number of the pull; null before the pull has started, and for a plan. */
  number: number | null;
}

/** Name of the counter column: branches and tags are counted separately. */
const counterOf = ({ publishes }: PullTurn): string => (publishes ? "tag_pulls" : "branch_pulls");

const digestOf = (ref: string, target: string): string =>
  createHash("sha256").update(`${ref} ${target}`).digest("base64url").slice(0, 22);

const CONNECTION_CONDITION = "app_id = $1 AND credential_id IS NOT DISTINCT FROM $2";

const IS_PUBLISHED = `SELECT FROM app_git WHERE ${CONNECTION_CONDITION} AND $3 = ANY(published_tags)`;

const ADD_PUBLISHED = `
  UPDATE app_git SET published_tags = (array_remove(published_tags, $3) || $3::text)
                                      [greatest(1, cardinality(array_remove(published_tags, $3)) + 2 - ${PUBLISHED_TAGS_MAX}):]
   WHERE ${CONNECTION_CONDITION}`;

const outdatedPullError = (): ActionError =>
  new ActionError("MANIFEST_CHANGED", "a later pull has started, or the connection has changed");

export type GitPullOrder = ReturnType<typeof createGitPullOrder>;

export function createGitPullOrder(db: DataSource) {
  return {
    /** Starts the pull. A later pull gets a higher number. @throws ActionError MANIFEST_CHANGED if the connection has changed */
    async start(turn: PullTurn): Promise<void> {
      const counter = counterOf(turn);
      const sql = `UPDATE app_git SET ${counter} = ${counter} + 1 WHERE ${CONNECTION_CONDITION} RETURNING ${counter} AS number`;
      const [row] = await rows<{ number: number }>(db, sql, [turn.appId, turn.credentialId]);
      if (!row) throw outdatedPullError();
      turn.number = Number(row.number);
    },

    /**
     * Checks that the pull is not outdated.
     * @param manager of a transaction, until whose end the connection is locked; null to lock nothing
     * @throws ActionError MANIFEST_CHANGED if a later pull has started, or the connection has changed
     */
    async check(manager: EntityManager | null, turn: PullTurn): Promise<void> {
      const sql = `SELECT FROM app_git WHERE ${CONNECTION_CONDITION} AND ${counterOf(turn)} = $3${manager ? " FOR NO KEY UPDATE" : ""}`;
      const turnRows = await rows(manager ?? db, sql, [turn.appId, turn.credentialId, turn.number]);
      if (turnRows.length === 0) throw outdatedPullError();
    },

    /** True if the tag was published with this target before. */
    isPublished: async ({ appId, credentialId }: PullTurn, ref: string, target: string): Promise<boolean> =>
      (await rows(db, IS_PUBLISHED, [appId, credentialId, digestOf(ref, target)])).length > 0,

    async addPublished({ appId, credentialId }: PullTurn, ref: string, target: string): Promise<void> {
      await rows(db, ADD_PUBLISHED, [appId, credentialId, digestOf(ref, target)]);
    },

    /** Stores the outcome. Stores nothing for an outdated pull. */
    async record(turn: PullTurn, pull: Omit<LastPull, "at">): Promise<void> {
      const order = turn.number === null ? "" : `AND ${counterOf(turn)} = $4`;
      const values = [turn.appId, turn.credentialId, JSON.stringify(pull)];
      const sql = `UPDATE app_git SET last_pull = ${storedPull("$3::json")} WHERE ${CONNECTION_CONDITION} ${order}`;
      await rows(db, sql, turn.number === null ? values : [...values, turn.number]);
    },
  };
}
