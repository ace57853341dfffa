/** Notifies editors when an action changes. The notification names the action, the person and the change, without the code. */

import type { Logger } from "pino";
import { runInBackground } from "../../background.js";
import { type Db, rows } from "../../data/database.js";
import { type Person, personJsonSql } from "../../data/person.js";
import type { DatabaseNotifications } from "../../engine/notifications.js";
import { createSubscriptionSource, type SubscriptionSource } from "../records/subscription-source.js";

/**
 * PostgreSQL notification channel. When a draft or live version is written or removed, a database trigger sends
 * `appId:masterId:removed`. `masterId` is the ID of the draft; `removed` is `true` if the draft was removed, otherwise `false`.
 */
export const ACTION_EDITED_CHANNEL = "svc_action_edited";

export interface ActionChange {
  /**
   * True if the subscriber must read all actions: at its start, and after notifications may have been lost. All other fields are then null,
   * false or empty.
   */
  reset: boolean;
  /** ID of the draft; null if `reset` is true. */
  id: number | null;
  removed: boolean;
  /** Time of the draft's last change; null if the draft was removed. */
  updatedAt: string | null;
  /** Type of the change in the audit log, such as `appAction.v3.update`; null if the audit log has no entry for the change. */
  type: string | null;
  /** Names of the fields that an update changed. Empty for other types of change. */
  fields: string[];
  user: Person | null;
}

interface ChangedActionRow {
  updatedAt: Date | null;
  type: string | null;
  data: { fields?: string[] } | null;
  user: Person | null;
}

/* Selects the changed draft, and its latest audit entry of the last minute. The transaction of the change has written this entry. */
const SELECT_CHANGED_ACTION = `
  SELECT master.updated_at AS "updatedAt", entry.type, entry.data, ${personJsonSql("person")} AS "user"
    FROM (VALUES ($1::bigint, $2::bigint)) AS changed (app_id, id)
    LEFT JOIN action master ON master.app_id = changed.app_id AND master.id = changed.id
    LEFT JOIN LATERAL (
      SELECT type, data, person_id FROM audit_entry
       WHERE app_id = changed.app_id AND action_id = changed.id AND created_at > now() - interval '1 minute'
       ORDER BY id DESC LIMIT 1) entry ON true
    LEFT JOIN person ON person.id = entry.person_id`;

const RESET_CHANGE: ActionChange = {
  reset: true,
  id: null,
  removed: false,
  updatedAt: null,
  type: null,
  fields: [],
  user: null,
};

function notifyListeners(listeners: Iterable<(change: ActionChange) => void>, change: ActionChange): void {
  for (const listener of listeners) listener(change);
}

interface ActionChangeFeedOptions {
  db: Db;
  notifications: DatabaseNotifications;
  log: Logger;
}

export class ActionChangeFeed {
  private readonly listenersByApp = new Map<number, Set<(change: ActionChange) => void>>();

  constructor(private readonly options: ActionChangeFeedOptions) {
    const { notifications, log } = options;
    notifications.listen(ACTION_EDITED_CHANNEL, (notice) => {
      const [appId, id, removed] = notice.split(":") as [string, string, string];
      const listeners = this.listenersByApp.get(Number(appId));
      if (!listeners) return;
      const changePromise = this.readChange(Number(appId), Number(id), removed === "true").catch((error: unknown) => {
        log.warn(
          { err: error, appId },
          "a change of an action could not be read; the service sends a reset to the subscribers of the app",
        );
        return { ...RESET_CHANGE };
      });
      runInBackground(changePromise.then((change) => notifyListeners(listeners, change)));
    });
    notifications.onGap(() => {
      for (const listeners of this.listenersByApp.values()) notifyListeners(listeners, { ...RESET_CHANGE });
    });
  }

  private async readChange(appId: number, id: number, removed: boolean): Promise<ActionChange> {
    const [changedAction] = await rows<ChangedActionRow>(this.options.db, SELECT_CHANGED_ACTION, [appId, id]);
    const { updatedAt, type, data, user } = changedAction!;
    return {
      ...{ reset: false, id, removed, type, user, fields: data?.fields ?? [] },
      updatedAt: updatedAt?.toISOString() ?? null,
    };
  }

  /**
   * Returns the changes of an app's actions as a source of events for subscriptions. The first event is a `reset`.
   * Each later change causes an event; several changes of one action can share one event. If changes may be lost, the source sends another
   * `reset` instead.
   */
  follow(appId: number): SubscriptionSource<ActionChange> {
    return createSubscriptionSource<ActionChange>(appId, (listener) => {
      const listeners = this.listenersByApp.get(appId) ?? new Set();
      this.listenersByApp.set(appId, listeners.add(listener));
      listener({ ...RESET_CHANGE });
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0 && this.listenersByApp.get(appId) === listeners) this.listenersByApp.delete(appId);
      };
    });
  }
}
