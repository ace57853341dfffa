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

interface WatchedSource<Subscriber> {
  /** Subscribers, each with the ID of the entry of the user who is signed in on its page. */
  subscribers: Map<Subscriber, number>;
  /** ID of the last change of entries that was read; null before the first read. */
  position: number | null;
  /** Resolves after all queued reads. Each new read is chained to this promise. */
  pendingReads: Promise<void>;
}

interface SignedInUserWatchOptions<Subscriber> {
  db: Db;
  notifications: DatabaseNotifications;
  log: Logger;
  /** Receives the subscribers whose rights must be checked again, because the entry of their signed-in user may have changed. */
  onChanged: (subscribers: Subscriber[]) => void;
}

export class SignedInUserWatch<Subscriber> {
  /** Watched data sources of users. The keys are `appId:dataSourceId`. */
  private readonly watchedSources = new Map<string, WatchedSource<Subscriber>>();
  private readonly keys = new Map<Subscriber, string>();

  constructor(private readonly options: SignedInUserWatchOptions<Subscriber>) {
    options.notifications.listen(ENTRY_CHANNEL, (key) => {
      const watchedSource = this.watchedSources.get(key);
      if (watchedSource) this.readInOrder(key, watchedSource);
    });
  }

  private async readChanges(key: string, watchedSource: WatchedSource<Subscriber>): Promise<void> {
    const { db, onChanged } = this.options;
    const sourceKey = key.split(":").map(Number);
    if (watchedSource.position === null) {
      watchedSource.position = (await rows<{ id: number }>(db, SELECT_NEWEST_CHANGE, sourceKey))[0]!.id;
      return onChanged([...watchedSource.subscribers.keys()]);
    }
    const changes = await rows<{ id: number; bulk: boolean; replaced: number[] }>(db, SELECT_CHANGES_SINCE, [
      ...sourceKey,
      watchedSource.position,
    ]);
    watchedSource.position = changes.at(-1)?.id ?? watchedSource.position;
    const isBulk = changes.some(({ bulk }) => bulk);
    const entries = new Set(changes.flatMap(({ replaced }) => replaced));
    onChanged(
      [...watchedSource.subscribers].flatMap(([subscriber, entry]) =>
        isBulk || entries.has(entry) ? [subscriber] : [],
      ),
    );
  }

  private readInOrder(key: string, watchedSource: WatchedSource<Subscriber>): void {
    const { log, onChanged } = this.options;
    watchedSource.pendingReads = watchedSource.pendingReads
      .then(() => this.readChanges(key, watchedSource))
      .catch((error: unknown) => {
        log.warn(
          { err: error },
          "reading changes of the entries of app users failed; all affected subscribers are checked",
        );
        // Checks the rights of all subscribers after a failed read. Otherwise a user who has lost rights could still receive changes.
        onChanged([...watchedSource.subscribers.keys()]);
      });
  }

  /** Sets the user who is signed in on the subscriber's page; null if no user is signed in. */
  setUser(subscriber: Subscriber, appId: number, user: UserEntryKey | null): void {
    this.remove(subscriber);
    if (!user) return;
    const key = `${appId}:${user.dataSourceId}`;
    const watchedSource = this.watchedSources.get(key) ?? {
      subscribers: new Map<Subscriber, number>(),
      position: null,
      pendingReads: Promise.resolve(),
    };
    this.watchedSources.set(key, watchedSource);
    watchedSource.subscribers.set(subscriber, user.id);
    this.keys.set(subscriber, key);
  }

  remove(subscriber: Subscriber): void {
    const key = this.keys.get(subscriber);
    if (key === undefined) return;
    this.keys.delete(subscriber);
    const watchedSource = this.watchedSources.get(key);
    watchedSource?.subscribers.delete(subscriber);
    if (watchedSource?.subscribers.size === 0) this.watchedSources.delete(key);
  }
}
