/**
 * Stores payload presets: named sample payloads with which authors test an action. Versions and exports of an action do
 * not contain its presets.
 */
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { JSON_MAX_DEPTH, PAYLOAD_PRESET_MAX_BYTES, PAYLOAD_PRESETS_PER_ACTION } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { describeValue, isObject, nestsDeeperThan } from "../../rules/describe-value.js";
import { refuseField, requireText } from "../../rules/fields.js";
import { JsonText } from "../../rules/json-text.js";
import { type ExpectedVersions, NEXT_UPDATED_AT_SQL, requireExpectedVersion } from "../../rules/precondition.js";
import { throwIfUnknownField } from "../../rules/unknown-fields.js";

export interface PayloadPreset {
  name: string;
  payload: JsonText;
  /** Time of the preset's last change, ISO 8601. */
  updatedAt: string;
}

const LOCK_ACTION = "SELECT id FROM action WHERE app_id = $1 AND id = $2 AND master_id IS NULL FOR NO KEY UPDATE";
const SELECT_ACTION = "SELECT FROM action WHERE app_id = $1 AND id = $2 AND master_id IS NULL";
const LIST_PRESETS = `
  SELECT name, payload::text, updated_at AS "updatedAt" FROM payload_preset
   WHERE action_id = (SELECT id FROM action WHERE app_id = $1 AND id = $2 AND master_id IS NULL) ORDER BY name`;
const SAVE_PRESET = `
  INSERT INTO payload_preset (action_id, name, payload, person_id) VALUES ($1, $2, $3, $4)
  ON CONFLICT (action_id, name) DO UPDATE SET payload = excluded.payload, person_id = excluded.person_id,
    updated_at = ${NEXT_UPDATED_AT_SQL.replaceAll("updated_at", "payload_preset.updated_at")}`;
const DELETE_PRESET = `
  DELETE FROM payload_preset USING action
   WHERE payload_preset.action_id = action.id AND action.app_id = $1 AND action.id = $2 AND payload_preset.name = $3
  RETURNING payload_preset.name`;

/** Checks that a payload is a JSON object within the limits, and returns it as JSON text. @throws PAYLOAD_INVALID */
function toPayloadJson(payload: unknown): string {
  const isShallowObject = isObject(payload) && !nestsDeeperThan(payload, JSON_MAX_DEPTH);
  const text = isShallowObject ? JSON.stringify(payload) : "";
  if (isShallowObject && Buffer.byteLength(text) <= PAYLOAD_PRESET_MAX_BYTES) return text;
  const receivedText = isShallowObject ? `${Buffer.byteLength(text)} bytes` : describeValue(payload);
  const expected = `a JSON object of at most ${PAYLOAD_PRESET_MAX_BYTES} bytes and ${JSON_MAX_DEPTH} levels`;
  throw new ActionError("PAYLOAD_INVALID", `"payload" must be ${expected} (got ${receivedText})`);
}

export class PayloadPresets {
  constructor(private readonly options: { db: Db }) {}

  private async read(appId: number, actionId: number, executor: SqlClient = this.options.db): Promise<PayloadPreset[]> {
    const presetRows = await rows<{ name: string; payload: string; updatedAt: Date }>(executor, LIST_PRESETS, [
      appId,
      actionId,
    ]);
    return presetRows.map(({ name, payload, updatedAt }) => ({
      name,
      payload: new JsonText(payload),
      updatedAt: updatedAt.toISOString(),
    }));
  }

  /** Checks the header `If-Match`. @throws RESOURCE_CHANGED if the preset has none of the ETags in `precondition`, or does not exist */
  private async requireUnchangedPreset(
    executor: SqlClient,
    { appId, actionId, name }: { appId: number; actionId: number; name: string },
    precondition: ExpectedVersions,
  ): Promise<void> {
    if (!precondition) return;
    const preset = (await this.read(appId, actionId, executor)).find((preset) => preset.name === name);
    if (!preset)
      throw new ActionError(
        "RESOURCE_CHANGED",
        `this action has no payload preset ${JSON.stringify(name)}; list the presets again`,
      );
    requireExpectedVersion(preset, precondition);
  }

  /** Lists the payload presets of a draft, sorted by name. @throws ActionError ACTION_NOT_FOUND */
  async list(appId: number, actionId: number): Promise<PayloadPreset[]> {
    const presets = await this.read(appId, actionId);
    if (presets.length > 0 || (await rows(this.options.db, SELECT_ACTION, [appId, actionId])).length > 0)
      return presets;
    throw new ActionError("ACTION_NOT_FOUND");
  }

  /**
   * Creates a payload preset, or replaces the preset with the same name. Returns all presets of the draft.
   * @throws ActionError ACTION_NOT_FOUND, REQUEST_INVALID, PAYLOAD_INVALID, RESOURCE_CHANGED
   */
  async save(
    caller: Caller,
    appId: number,
    actionId: number,
    name: unknown,
    payload: unknown,
    precondition?: ExpectedVersions,
  ): Promise<PayloadPreset[]> {
    const title = requireText(name, "name");
    const text = toPayloadJson(payload);
    await this.options.db.transaction(async (manager) => {
      // Locks the row of the action. Without the lock, concurrent requests could exceed the maximum number of presets.
      if ((await rows(manager, LOCK_ACTION, [appId, actionId])).length === 0) throw new ActionError("ACTION_NOT_FOUND");
      await this.requireUnchangedPreset(manager, { appId, actionId, name: title }, precondition);
      const [others] = await rows<{ count: number }>(
        manager,
        "SELECT count(*) FROM payload_preset WHERE action_id = $1 AND name <> $2",
        [actionId, title],
      );
      if (others!.count >= PAYLOAD_PRESETS_PER_ACTION) {
        const message = `this action already has the maximum of ${PAYLOAD_PRESETS_PER_ACTION} payload presets; delete one first`;
        throw new ActionError("REQUEST_INVALID", message);
      }
      await rows(manager, SAVE_PRESET, [actionId, title, text, caller.personId]);
    });
    return this.read(appId, actionId);
  }

  /** Deletes a payload preset and returns the remaining ones. @throws REQUEST_INVALID if no preset has this name; RESOURCE_CHANGED */
  async remove(
    caller: Caller,
    appId: number,
    actionId: number,
    name: unknown,
    precondition?: ExpectedVersions,
  ): Promise<PayloadPreset[]> {
    const title = requireText(name, "name");
    await this.options.db.transaction(async (manager) => {
      await rows(manager, LOCK_ACTION, [appId, actionId]);
      await this.requireUnchangedPreset(manager, { appId, actionId, name: title }, precondition);
      const deletedRow = await rows(manager, DELETE_PRESET, [appId, actionId, title]);
      if (deletedRow.length === 0) {
        refuseField("name", "the name of a payload preset of this action", title);
      }
      throwIfUnknownField(caller);
    });
    return this.read(appId, actionId);
  }
}
