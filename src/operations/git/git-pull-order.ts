/**
 * Numbers the pulls of an app, across all processes, so that an older pull cannot overwrite the result of a newer pull.
 * Also stores the tags whose actions were published.
 */
import { createHash } from "node:crypto";
import type { EntityManager } from "typeorm";
import { type Db, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { LastGitPull } from "./git-connections.js";

/** Maximum number of published tags that are stored for a Git connection. The oldest tags are removed first. */
const PUBLISHED_TAGS_MAX = 10_000;

/**
 * Returns an SQL expression for the JSON of a pull's result (LastGitPull) as the table app_git stores it. The time comes
 * from the database's clock, which is the same for all processes.
 * @param pull SQL expression of type json: the result without its time
 */
export const createLastGitPullJsonSql = (pull: string): string => {
  const fields = ["ref", "commit", "published", "error"].map((name) => `'${name}', ${pull}->'${name}'`).join(", ");
  return `json_build_object(${fields}, 'at', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`;
};

export interface GitPullPosition {
  appId: number;
  /** ID of the Git connection's credential. Each change of the connection creates a new credential. */
  credentialId: number | null;
  /** True for the pull of a tag, which also publishes actions. Pulls of tags and pulls of branches are numbered separately. */
  isTag: boolean;
  /** ID of the webhook that has caused the pull; null for a pull by hand. */
  webhookId: number | null;
  /** Number of the pull; null before the pull has started, and for a pull that only plans changes (dry run). */
  number: number | null;
}

const getPullCounterColumn = ({ isTag }: GitPullPosition): string => (isTag ? "tag_pulls" : "branch_pulls");

/**
 * Returns an SQL condition and the value of its parameter. The condition is true if no later pull has started. If this pull has not started
 * yet, the condition is true if no pull has started since the last attempt of its webhook. Without an attempt, it is always true.
 */
function buildNewestPullCondition(position: GitPullPosition, parameter: string): { sql: string; value: number | null } {
  const counterColumn = getPullCounterColumn(position);
  if (position.number !== null) return { sql: `${counterColumn} = ${parameter}`, value: position.number };
  const lastAttemptSql = `SELECT pull_number FROM git_webhook WHERE id = ${parameter}::bigint`;
  return { sql: `${counterColumn} = coalesce((${lastAttemptSql}), ${counterColumn})`, value: position.webhookId };
}

const createTagDigest = (ref: string, target: string): string =>
  createHash("sha256").update(`${ref} ${target}`).digest("base64url").slice(0, 22);

const CONNECTION_CONDITION = "app_id = $1 AND credential_id IS NOT DISTINCT FROM $2";

const IS_TAG_PUBLISHED = `SELECT FROM app_git WHERE ${CONNECTION_CONDITION} AND $3 = ANY(published_tags)`;

const ADD_PUBLISHED_TAG = `
  UPDATE app_git SET published_tags = (array_remove(published_tags, $3) || $3::text)
                                      [greatest(1, cardinality(array_remove(published_tags, $3)) + 2 - ${PUBLISHED_TAGS_MAX}):]
   WHERE ${CONNECTION_CONDITION}`;

const createOutdatedPullError = (): ActionError =>
  new ActionError(
    "MANIFEST_CHANGED",
    "the service stopped this Git pull, because a later pull has started, or because the Git connection was changed",
  );

export class GitPullOrder {
  constructor(private readonly db: Db) {}

  /**
   * Gives the pull the next number of the app's pulls. Stores this number in `position`, and also in the row of the pull's webhook.
   * @throws ActionError MANIFEST_CHANGED if the Git connection was changed, or if a later pull has started since the webhook's last attempt
   */
  async start(position: GitPullPosition): Promise<void> {
    const counterColumn = getPullCounterColumn(position);
    const { sql: isNewestSql, value } = buildNewestPullCondition(position, "$3");
    const sql = `
      WITH started AS (
        UPDATE app_git SET ${counterColumn} = ${counterColumn} + 1 WHERE ${CONNECTION_CONDITION} AND ${isNewestSql}
        RETURNING ${counterColumn} AS number),
      stored AS (UPDATE git_webhook SET pull_number = number FROM started WHERE git_webhook.id = $3::bigint)
      SELECT number FROM started`;
    const [row] = await rows<{ number: number }>(this.db, sql, [position.appId, position.credentialId, value]);
    if (!row) throw createOutdatedPullError();
    position.number = Number(row.number);
  }

  /**
   * Checks that no later pull of the app has started, and that the Git connection was not changed.
   * @param manager transaction in which to lock the connection until the transaction ends; null to check without a lock
   * @throws ActionError MANIFEST_CHANGED
   */
  async check(manager: EntityManager | null, position: GitPullPosition): Promise<void> {
    const sql = `SELECT FROM app_git WHERE ${CONNECTION_CONDITION} AND ${getPullCounterColumn(position)} = $3${manager ? " FOR NO KEY UPDATE" : ""}`;
    const connectionRows = await rows(manager ?? this.db, sql, [
      position.appId,
      position.credentialId,
      position.number,
    ]);
    if (connectionRows.length === 0) throw createOutdatedPullError();
  }

  /** True if a pull has already published this tag with the same target (commit or tag object). */
  async isPublished({ appId, credentialId }: GitPullPosition, ref: string, target: string): Promise<boolean> {
    return (await rows(this.db, IS_TAG_PUBLISHED, [appId, credentialId, createTagDigest(ref, target)])).length > 0;
  }

  async addPublished({ appId, credentialId }: GitPullPosition, ref: string, target: string): Promise<void> {
    await rows(this.db, ADD_PUBLISHED_TAG, [appId, credentialId, createTagDigest(ref, target)]);
  }

  /** Stores the result of a pull as the last pull of the connection, unless a later pull has started. */
  async record(position: GitPullPosition, pull: Omit<LastGitPull, "at">): Promise<void> {
    const { sql: isNewestSql, value } = buildNewestPullCondition(position, "$4");
    const sql = `UPDATE app_git SET last_pull = ${createLastGitPullJsonSql("$3::json")} WHERE ${CONNECTION_CONDITION} AND ${isNewestSql}`;
    await rows(this.db, sql, [position.appId, position.credentialId, JSON.stringify(pull), value]);
  }
}
