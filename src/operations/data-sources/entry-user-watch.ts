/** Watches the entries of app users that follow data sources: a changed entry may change what its user can see. */
import type { Logger } from "pino";
import type { DataSource as Database } from "typeorm";
import { rows } from "../../data/database.js";
import type { Notifications } from "../../engine/notifications.js";
import type { AppUser } from "./app-users.js";
import { ENTRY_CHANNEL } from "./entry-changes.js";

export type UserEntry = Pick<AppUser, "id" | "dataSourceId">;

const CHANGED_SINCE = `
  SELECT id, bulk, ARRAY(SELECT (one ->> 'id')::bigint FROM json_array_elements(replaced) AS one) AS replaced
    FROM data_source_change WHERE app_id = $1 AND data_source_id = $2 AND id > $3 ORDER BY id`;
const NEWEST = "SELECT coalesce(max(id), 0) AS id FROM data_source_change WHERE app_id = $1 AND data_source_id = $2";

/** The subscribers whose users are entries of one data source. */
interface Watched<Follower> {
  followers: Map<Follower, number>;
  /** The last change that was read; null before the first. */
  position: number | null;
  /** Serializes reads. */
  order: Promise<void>;
}

/** @param onChanged receives the subscribers whose user's entry may have changed */
export function createEntryUserWatch<Follower>(options: {
  db: Database;
  notifications: Notifications;
  log: Logger;
  onChanged: (followers: Follower[]) => void;
}) {
  const { db, notifications, log, onChanged } = options;
  /** By `appId:dataSourceId`. */
  const watched = new Map<string, Watched<Follower>>();
  const keys = new Map<Follower, string>();

  async function read(key: string, of: Watched<Follower>): Promise<void> {
    const place = key.split(":").map(Number);
    if (of.position === null) {
      of.position = (await rows<{ id: number }>(db, NEWEST, place))[0]!.id;
      return onChanged([...of.followers.keys()]);
    }
    const changes = await rows<{ id: number; bulk: boolean; replaced: number[] }>(db, CHANGED_SINCE, [
      ...place,
      of.position,
    ]);
    of.position = changes.at(-1)?.id ?? of.position;
    const isBulk = changes.some(({ bulk }) => bulk);
    const entries = new Set(changes.flatMap(({ replaced }) => replaced));
    onChanged([...of.followers].flatMap(([follower, entry]) => (isBulk || entries.has(entry) ? [follower] : [])));
  }

  function readInOrder(key: string, of: Watched<Follower>): void {
    of.order = of.order
      .then(() => read(key, of))
      .catch((error: unknown) => {
        log.warn({ err: error }, "changes of app users could not be read");
        // An unnecessary check is better than a missed one.
        onChanged([...of.followers.keys()]);
      });
  }

  notifications.listen(ENTRY_CHANNEL, (key) => {
    const of = watched.get(key);
    if (of) readInOrder(key, of);
  });

  function remove(follower: Follower): void {
    const key = keys.get(follower);
    if (key === undefined) return;
    keys.delete(follower);
    const of = watched.get(key);
    of?.followers.delete(follower);
    if (of?.followers.size === 0) watched.delete(key);
  }

  return {
    /** Sets the user whose entry the subscriber depends on; null for none. */
    set(follower: Follower, appId: number, user: UserEntry | null): void {
      remove(follower);
      if (!user) return;
      const key = `${appId}:${user.dataSourceId}`;
      const of = watched.get(key) ?? {
        followers: new Map<Follower, number>(),
        position: null,
        order: Promise.resolve(),
      };
      watched.set(key, of);
      of.followers.set(follower, user.id);
      keys.set(follower, key);
    },
    remove,
  };
}
