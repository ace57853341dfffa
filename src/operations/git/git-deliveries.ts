/**
 * Queue of accepted webhooks of git servers. A row exists until its pull has ended, so that another process continues after a crash. A
 * process leases the rows that it works on. An app has one pull in progress at a time, in the order of arrival.
 */
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";
import { storedPull } from "./git-pull-order.js";

/** Maximum number of an app's webhooks that wait for their pull. */
export const WAITING_MAX = 20;
/** Maximum attempts of a webhook whose pull was interrupted by a crash or by a failure of the service. */
const ATTEMPTS_MAX = 3;

const GIVEN_UP = "the pull was interrupted in every attempt, and is not tried again";

/* Adds a webhook, once for each waiting ref. $1 is the app, $2 the ref. Adds nothing if the repository was disconnected meanwhile. */
const ADD = `
  WITH waiting AS (SELECT ref FROM git_webhook WHERE app_id = $1 AND holder IS NULL),
  connected AS (SELECT app_id FROM app_git WHERE app_id = $1 AND (SELECT count(*) FROM waiting) < ${WAITING_MAX} FOR KEY SHARE),
  added AS (
    INSERT INTO git_webhook (app_id, ref) SELECT app_id, $2 FROM connected
    ON CONFLICT (app_id, ref) WHERE holder IS NULL DO NOTHING)
  SELECT (SELECT count(*) FROM waiting) < ${WAITING_MAX} OR EXISTS (SELECT FROM waiting WHERE ref = $2) AS "isAccepted"`;

/* Claims the oldest webhook of each app that has none in progress. $1 is the holder, $2 the limit. */
const CLAIM_DELIVERY = `
  UPDATE git_webhook SET holder = $1, claimed_at = now(), attempts = attempts + 1
   WHERE id IN (
     SELECT id FROM git_webhook AS waiting
      WHERE holder IS NULL
        AND NOT EXISTS (SELECT FROM git_webhook AS other
                         WHERE other.app_id = waiting.app_id AND (other.holder IS NOT NULL OR other.id < waiting.id))
      ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED)
  RETURNING id, app_id AS "appId", ref`;

/*
 * $1 holder, $2 the IDs that it knows: the response to a claim may have been lost. $3 true if processes with an expired lease are dead.
 * Drops webhooks that have been tried too often, and those whose ref was pushed again meanwhile. The former become the last pull of their
 * connection, unless another pull has ended since their last attempt began. Both times are those of the database's clock.
 */
const RELEASE_DELIVERY = `
  WITH lost AS (
    SELECT id, app_id, ref, claimed_at, attempts >= ${ATTEMPTS_MAX} AS "isGivenUp",
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
    UPDATE app_git SET last_pull = ${storedPull(`json_build_object('ref', lost.ref, 'published', '[]'::json, 'error', '${GIVEN_UP}')`)}
      FROM lost WHERE app_git.app_id = lost.app_id AND "isGivenUp" AND NOT "isRepeated"
                  AND (last_pull IS NULL OR (last_pull->>'at')::timestamptz < claimed_at))
  SELECT app_id AS "appId", ref, "isGivenUp" AND NOT "isRepeated" AS "isGivenUp" FROM lost`;

/** A webhook that this process has claimed. */
export interface ClaimedWebhook {
  id: number;
  appId: number;
  ref: string;
}

/** A webhook whose pull was interrupted. It is tried again unless it had too many attempts. */
export interface LostWebhook {
  appId: number;
  ref: string;
  isGivenUp: boolean;
}

export type GitDeliveries = ReturnType<typeof createGitDeliveries>;

/** @param holder ID of this process's lease */
export function createGitDeliveries({ db, holder }: { db: DataSource; holder: string }) {
  return {
    /** Adds a webhook. Returns false if too many webhooks of the app wait. */
    async add(appId: number, ref: string): Promise<boolean> {
      const [row] = await rows<{ isAccepted: boolean }>(db, ADD, [appId, ref]);
      return row!.isAccepted;
    },

    claim: (count: number): Promise<ClaimedWebhook[]> => rows<ClaimedWebhook>(db, CLAIM_DELIVERY, [holder, count]),

    /** Removes a webhook whose pull has ended. */
    async remove({ id }: ClaimedWebhook): Promise<void> {
      await rows(db, "DELETE FROM git_webhook WHERE id = $1 AND holder = $2", [id, holder]);
    },

    /**
     * Releases webhooks that the database gave to this process without its knowledge, whose pull failed in the service and, if
     * `mayDeclareDead`, those of dead processes.
     */
    release: (knownIds: readonly number[], mayDeclareDead: boolean): Promise<LostWebhook[]> =>
      rows<LostWebhook>(db, RELEASE_DELIVERY, [holder, knownIds, mayDeclareDead]),

    /** Does not count the attempts of pulls that an orderly stop interrupts. Their webhooks stay claimed until the lease ends. */
    async returnAttempts(interrupted: readonly number[]): Promise<void> {
      const sql = "UPDATE git_webhook SET attempts = attempts - 1 WHERE holder = $1 AND id = ANY ($2::bigint[])";
      await rows(db, sql, [holder, interrupted]);
    },
  };
}
