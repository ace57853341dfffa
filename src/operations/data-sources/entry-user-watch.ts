/**
 * Watches the entries of the users who are signed in on subscribed pages. Access rules can use values of the user's
 * entry. So a change of this entry can change which entries a subscriber can see.
 */
import type { Logger } from "pino";
import { type Db, rows } from "../../data/database.js";
import type { DatabaseNotifications } from "../../engine/notifications.js";
import type { AppUser } from "./app-users.js";
import { ENTRY_CHANNEL } from "./entry-changes.js";

export type UserEntryKey = Pick<AppUser, "id" | "dataSourceId">;

const SELECT_CHANGES_SINCE = `
  SELECT id, bulk, ARRAY(SELECT (image ->> 'id')::bigint FROM json_array_elements(replaced) AS image) AS replaced
    FROM data_source_change WHERE app_id = $1 AND data_source_id = $2 AND id > $3 ORDER BY id`;
const SELECT_NEWEST_CHANGE =
  "SELECT coalesce(max(id), 0) AS id FROM data_source_change WHERE app_id = $1 AND data_source_id = $2";

interface WatchedSource<Follower> {
  followers: Map<Follower, number>;
  /** ID of the last change of entries that was read; null before the first read. */
  position: number | null;
  /** Resolves after all queued reads. Each new read is chained to this promise. */
  pendingReads: Promise<void>;
}

interface SignedInUserWatchOptions<Follower> {
  db: Db;
  notifications: DatabaseNotifications;
  log: Logger;
  /** Receives the subscribers whose rights must be checked again, because the entry of their signed-in user may have changed. */
  onChanged: (followers: Follower[]) => void;
}

export class SignedInUserWatch<Follower> {
  /** Watched data sources of users. The keys are `appId:dataSourceId`. */
  private readonly watchedSources = new Map<string, WatchedSource<Follower>>();
  private readonly keys = new Map<Follower, string>();

  constructor(private readonly options: SignedInUserWatchOptions<Follower>) {
    options.notifications.listen(ENTRY_CHANNEL, (key) => {
      const of = this.watchedSources.get(key);
      if (of) this.readInOrder(key, of);
    });
  }

  private async readChanges(key: string, watched: WatchedSource<Follower>): Promise<void> {
    const { db, onChanged } = this.options;
    const sourceKey = key.split(":").map(Number);
    if (watched.position === null) {
      watched.position = (await rows<{ id: number }>(db, SELECT_NEWEST_CHANGE, sourceKey))[0]!.id;
      return onChanged([...watched.followers.keys()]);
    }
    const changes = await rows<{ id: number; bulk: boolean; replaced: number[] }>(db, SELECT_CHANGES_SINCE, [
      ...sourceKey,
      watched.position,
    ]);
    watched.position = changes.at(-1)?.id ?? watched.position;
    const isBulk = changes.some(({ bulk }) => bulk);
    const entries = new Set(changes.flatMap(({ replaced }) => replaced));
    onChanged([...watched.followers].flatMap(([follower, entry]) => (isBulk || entries.has(entry) ? [follower] : [])));
  }

  private readInOrder(key: string, watched: WatchedSource<Follower>): void {
    const { log, onChanged } = this.options;
    watched.pendingReads = watched.pendingReads
      .then(() => this.readChanges(key, watched))
      .catch((error: unknown) => {
        log.warn(
          { err: error },
          "reading changes of the entries of app users failed; all affected subscribers are checked",
        );
        // Checks the rights of all subscribers after a failed read. Otherwise a user who has lost rights could still receive changes.
        onChanged([...watched.followers.keys()]);
      });
  }

  /** Sets the user who is signed in on the subscriber's page; null if no user is signed in. */
  set(follower: Follower, appId: number, user: UserEntryKey | null): void {
    this.remove(follower);
    if (!user) return;
    const key = `${appId}:${user.dataSourceId}`;
    const of = this.watchedSources.get(key) ?? {
      followers: new Map<Follower, number>(),
      position: null,
      pendingReads: Promise.resolve(),
    };
    this.watchedSources.set(key, of);
    of.followers.set(follower, user.id);
    this.keys.set(follower, key);
  }

  remove(follower: Follower): void {
    const key = this.keys.get(follower);
    if (key === undefined) return;
    this.keys.delete(follower);
    const of = this.watchedSources.get(key);
    of?.followers.delete(follower);
    if (of?.followers.size === 0) this.watchedSources.delete(key);
  }
}
