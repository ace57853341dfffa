/** Publishes many actions at once, directly in the database, for tests of triggers. */

import { ActionRow } from "../../src/data/action.js";
import type { Concurrency, Debounce, Trigger } from "../../src/data/action-types.js";
import type { Db } from "../../src/data/database.js";
import { TriggerIndex } from "../../src/operations/triggers/trigger-index.js";

export interface LiveVersionFields {
  name: string;
  code?: string;
  triggers: { trigger: string; where?: object }[];
  frequency?: string | null;
  timezone?: string | null;
  active?: boolean;
  environment?: "server" | "client" | "any";
  concurrency?: Concurrency;
  jitterSeconds?: number;
  debounce?: Debounce;
}

const CODE = "async function execute() { return 1; }";

/** Publishes the app, and inserts a draft and a live version of each action. Schedules start at `now`. Returns the live versions. */
export async function insertPublishedActions(
  db: Db,
  appId: number,
  versionFields: readonly LiveVersionFields[],
  now: () => number = Date.now,
): Promise<ActionRow[]> {
  const index = new TriggerIndex({ now, defaultTimezone: "UTC" });
  return db.transaction(async (manager) => {
    await manager.query("UPDATE app SET published_at = coalesce(published_at, now()) WHERE id = $1", [appId]);
    const liveVersions: ActionRow[] = [];
    for (const { name, code = CODE, frequency = null, timezone = null, ...rest } of versionFields) {
      const { active = true, environment = "server", concurrency = null, debounce = null, jitterSeconds = null } = rest;
      const triggers = rest.triggers as Trigger[];
      const fields = { appId, name, code, triggers, frequency, timezone, active, environment, actionVersion: "v3" };
      const limits = { concurrency, debounce, timeoutMs: null, jitterSeconds, access: null };
      const common = { ...fields, ...limits, dependencies: [], assets: [], updatedAt: new Date() };
      const master = await manager.save(Object.assign(new ActionRow(), common));
      const liveVersion = await manager.save(Object.assign(new ActionRow(), common, { masterId: master.id }));
      await index.apply(manager, liveVersion);
      liveVersions.push(liveVersion);
    }
    return liveVersions;
  });
}
