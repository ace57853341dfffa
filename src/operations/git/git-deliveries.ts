/**
 * Queue of accepted webhooks of Git servers, in the table git_webhook. A process claims a webhook before it runs the pull, and removes the
 * webhook after the pull has ended. So another process can repeat the pull after a crash.
 */
import { type Db, rows } from "../../data/database.js";
import { createLastGitPullJsonSql } from "./git-pull-order.js";

/** Maximum number of webhooks of one app that wait for their pull. Further webhooks are rejected. */
export const WAITING_GIT_WEBHOOKS_PER_APP_MAX = 20;
/** Maximum number of attempts of a webhook's pull. The service tries again after a crash or a temporary error. */
const PULL_ATTEMPTS_MAX = 3;

const GIVEN_UP_PULL_ERROR =
  "the last attempt of this pull was interrupted, so the service does not repeat the pull; start a pull by hand";

/**
 * Adds a webhook of the app $1 for the ref $2. Adds nothing if a webhook for this ref already waits, if too many webhooks wait, or if no
 * repository is connected.
 */
const ADD_WEBHOOK = `
  WITH waiting AS (SELECT ref FROM git_webhook WHERE app_id = $1 AND holder IS NULL),
  connected AS (SELECT app_id FROM app_git WHERE app_id = $1 AND (SELECT count(*) FROM waiting) < ${WAITING_GIT_WEBHOOKS_PER_APP_MAX} FOR KEY SHARE),
  added AS (
    INSERT INTO git_webhook (app_id, ref) SELECT app_id, $2 FROM connected
    ON CONFLICT (app_id, ref) WHERE holder IS NULL DO NOTHING)
  SELECT (SELECT count(*) FROM waiting) < ${WAITING_GIT_WEBHOOKS_PER_APP_MAX} OR EXISTS (SELECT FROM waiting WHERE ref = $2) AS "isAccepted"`;

/* Claims the oldest webhook of each app that has no pull in progress. $1 is the process that claims, $2 the maximum number of webhooks. */
const CLAIM_WEBHOOKS = `
  UPDATE git_webhook SET holder = $1, claimed_at = now(), attempts = attempts + 1
   WHERE id IN (
     SELECT id FROM git_webhook AS waiting
      WHERE holder IS NULL
        AND NOT EXISTS (SELECT FROM git_webhook AS other
                         WHERE other.app_id = waiting.app_id AND (other.holder IS NOT NULL OR other.id < waiting.id))
      ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED)
  RETURNING id, app_id AS "appId", ref`;

/**
 * Releases claimed webhooks whose pull no process runs, so that a process repeats the pull. Deletes a webhook instead if it has no attempts
 * left, or if another webhook for its ref waits. If no attempts are left and no other webhook waits, stores an error as the app's last
 * pull, unless a pull has ended since the last attempt began.
 */
const RELEASE_WEBHOOKS = `
  WITH lost AS (
    SELECT id, app_id, ref, claimed_at, attempts >= ${PULL_ATTEMPTS_MAX} AS "isGivenUp",
           EXISTS (SELECT FROM git_webhook AS later
                    WHERE later.app_id = claimed.app_id AND later.ref = claimed.ref AND later.holder IS NULL) AS "isRepeated"
      FROM git_webhook AS claimed
     WHERE holder IS NOT NULL AND
           (($3 AND NOT EXISTS (SELECT FROM instance WHERE instance.id = claimed.holder AND lease_until >= now()))
            OR (holder = $1 AND id <> ALL ($2::bigint[]) AND claimed_at < now() - interval '10 seconds'))),
  dropped AS (DELETE FROM git_webhook USING lost WHERE git_webhook.id = lost.id AND ("isGivenUp" OR "isRepeated")),
  released AS (
    UPDATE git_webhook SET holder = NULL FROM lost
     WHERE git_webhook.id = lost.id AND NOT ("isGivenUp" OR "isRepeated")),
  recorded AS (
    UPDATE app_git SET last_pull = ${createLastGitPullJsonSql(`json_build_object('ref', lost.ref, 'published', '[]'::json, 'error', '${GIVEN_UP_PULL_ERROR}')`)}
      FROM lost WHERE app_git.app_id = lost.app_id AND "isGivenUp" AND NOT "isRepeated"
                  AND (last_pull IS NULL OR (last_pull->>'at')::timestamptz < claimed_at))
  SELECT app_id AS "appId", ref, "isGivenUp" AND NOT "isRepeated" AS "isGivenUp" FROM lost`;

export interface ClaimedGitWebhook {
  id: number;
  appId: number;
  ref: string;
}

/**
 * A webhook that `release` has put back into the queue, or deleted: its process crashed, its pull failed temporarily, or the response to
 * its claim was lost.
 */
export interface ReleasedGitWebhook {
  appId: number;
  ref: string;
  /** True if the service gives up: the webhook has no attempts left, and the queue has no newer webhook for its ref. */
  isGivenUp: boolean;
}

interface GitWebhookQueueOptions {
  db: Db;
  /** ID of this process, which is stored in the webhooks that the process claims. */
  holder: string;
}

export class GitWebhookQueue {
  constructor(private readonly options: GitWebhookQueueOptions) {}

  /**
   * Adds a webhook to the queue, unless one for this ref already waits there. Returns false if too many other webhooks of the app wait.
   */
  async add(appId: number, ref: string): Promise<boolean> {
    const [row] = await rows<{ isAccepted: boolean }>(this.options.db, ADD_WEBHOOK, [appId, ref]);
    return row!.isAccepted;
  }

  /** Claims up to `count` webhooks for this process, at most one for each app. */
  claim(count: number): Promise<ClaimedGitWebhook[]> {
    const { db, holder } = this.options;
    return rows<ClaimedGitWebhook>(db, CLAIM_WEBHOOKS, [holder, count]);
  }

  async remove({ id }: ClaimedGitWebhook): Promise<void> {
    const { db, holder } = this.options;
    await rows(db, "DELETE FROM git_webhook WHERE id = $1 AND holder = $2", [id, holder]);
  }

  /**
   * Puts claimed webhooks back into the queue if no process runs their pulls. This happens if the database's response
   * to the claim was lost, or if the pull failed temporarily. With `mayDeclareDead`, also releases webhooks of processes
   * whose lease has expired.
   * @param knownIds IDs of the webhooks whose pulls are in progress in this process
   */
  release(knownIds: readonly number[], mayDeclareDead: boolean): Promise<ReleasedGitWebhook[]> {
    const { db, holder } = this.options;
    return rows<ReleasedGitWebhook>(db, RELEASE_WEBHOOKS, [holder, knownIds, mayDeclareDead]);
  }

  /**
   * Subtracts 1 from the attempts of webhooks, so that the interrupted attempt does not count. Call this method when this process stops and
   * interrupts the pulls of these webhooks. Other processes cannot claim them until the lease of this process has expired.
   */
  async returnAttempts(interrupted: readonly number[]): Promise<void> {
    const { db, holder } = this.options;
    const sql = "UPDATE git_webhook SET attempts = attempts - 1 WHERE holder = $1 AND id = ANY ($2::bigint[])";
    await rows(db, sql, [holder, interrupted]);
  }
}
