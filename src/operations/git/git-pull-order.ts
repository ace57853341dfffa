/**
 * Numbers the pulls of an app, across all processes, so that an older pull cannot overwrite the result of a newer one.
 * Also stores which tags were published.
 */
import { createHash } from "node:crypto";
import type { DataSource, EntityManager } from "typeorm";
import { rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { LastPull } from "./git-connections.js";

/** Maximum number of published tags that are stored for a connection. The oldest tags are forgotten first. */
const PUBLISHED_TAGS_MAX = 10_000;

/**
 * Returns SQL of the result of a pull (LastPull) in its stored form.
 * @param pull SQL of type json: the result without its time. The time is added from the database's clock, which is the
 *   same for all processes
 */
export const storedPullSql = (pull: string): string => {
  const fields = ["ref", "commit", "published", "error"].map((name) => `'${name}', ${pull}->'${name}'`).join(", ");
  return `json_build_object(${fields}, 'at', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`;
};

/** Identifies a pull, and its position in the order of the app's pulls. */
export interface PullTurn {
  appId: number;
  /**
   * ID of the connection's credential. It identifies the state of the connection, because each change of the connection
   * creates a new credential.
   */
  credentialId: number | null;
  /** True for a tag, whose pull also publishes. Tags and branches are numbered separately. */
  publishes: boolean;
  /** Number of the pull; null before the pull has started, and for a plan. */
  number: number | null;
}

/** Returns the column that counts the pulls of tags or of branches. */
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
  new ActionError(
    "MANIFEST_CHANGED",
    "this pull was stopped, because a later pull has started or the connection was changed",
  );

export type GitPullOrder = ReturnType<typeof createGitPullOrder>;

export function createGitPullOrder(db: DataSource) {
  return {
    /**
     * Starts a pull by setting its number. A later pull gets a higher number. @throws ActionError MANIFEST_CHANGED if
     * the connection has changed
     */
    async start(turn: PullTurn): Promise<void> {
      const counter = counterOf(turn);
      const sql = `UPDATE app_git SET ${counter} = ${counter} + 1 WHERE ${CONNECTION_CONDITION} RETURNING ${counter} AS number`;
      const [row] = await rows<{ number: number }>(db, sql, [turn.appId, turn.credentialId]);
      if (!row) throw outdatedPullError();
      turn.number = Number(row.number);
    },

    /**
     * Checks that no later pull has started, and that the connection was not changed.
     * @param manager a transaction, which then locks the connection until it ends; null to lock nothing
     * @throws ActionError MANIFEST_CHANGED
     */
    async check(manager: EntityManager | null, turn: PullTurn): Promise<void> {
      const sql = `SELECT FROM app_git WHERE ${CONNECTION_CONDITION} AND ${counterOf(turn)} = $3${manager ? " FOR NO KEY UPDATE" : ""}`;
      const turnRows = await rows(manager ?? db, sql, [turn.appId, turn.credentialId, turn.number]);
      if (turnRows.length === 0) throw outdatedPullError();
    },

    /** True if the tag was published before with the same target (commit or tag object). */
    isPublished: async ({ appId, credentialId }: PullTurn, ref: string, target: string): Promise<boolean> =>
      (await rows(db, IS_PUBLISHED, [appId, credentialId, digestOf(ref, target)])).length > 0,

    /** Records that a tag with this target was published. */
    async addPublished({ appId, credentialId }: PullTurn, ref: string, target: string): Promise<void> {
      await rows(db, ADD_PUBLISHED, [appId, credentialId, digestOf(ref, target)]);
    },

    /** Stores the result of a pull as the last pull of the connection, unless a later pull has started. */
    async record(turn: PullTurn, pull: Omit<LastPull, "at">): Promise<void> {
      const order = turn.number === null ? "" : `AND ${counterOf(turn)} = $4`;
      const values = [turn.appId, turn.credentialId, JSON.stringify(pull)];
      const sql = `UPDATE app_git SET last_pull = ${storedPullSql("$3::json")} WHERE ${CONNECTION_CONDITION} ${order}`;
      await rows(db, sql, turn.number === null ? values : [...values, turn.number]);
    },
  };
}
