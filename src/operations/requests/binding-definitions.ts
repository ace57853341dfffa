/**
 * Reads and replaces an app's secret bindings and the list of its sealed settings. A binding adds the value of a setting to requests to one
 * origin. Code cannot read sealed settings.
 */
import type { EntityManager } from "typeorm";
import { queryPreparedRows, rows, type SqlClient } from "../../data/database.js";
import type { Caller } from "../../rules/access.js";
import { NEXT_UPDATED_AT_SQL } from "../../rules/precondition.js";
import {
  computeSealedKeysAfterChange,
  parseSecretBindings,
  type SecretBinding,
  type SecretBindingChange,
} from "../../rules/secret-bindings.js";
import { recordChange } from "../records/audit.js";
import { deleteUnusedOauthTokens, setSealedSettingKeys } from "../settings/secret-values.js";
import type { Settings } from "../settings/settings.js";

const SELECT_BINDINGS = 'SELECT bindings, updated_at AS "updatedAt" FROM secret_bindings WHERE app_id = $1';
const UPSERT_BINDINGS = `
  INSERT INTO secret_bindings (app_id, bindings) VALUES ($1, $2)
  ON CONFLICT (app_id) DO UPDATE SET bindings = excluded.bindings,
    updated_at = ${NEXT_UPDATED_AT_SQL.replaceAll("updated_at", "secret_bindings.updated_at")}`;
/** Changes the version of the app's secrets, so that all processes read the new bindings. */
const INCREASE_SECRETS_VERSION = "UPDATE app SET secrets_version = secrets_version + 1 WHERE id = $1";

/** Returns the app's bindings; null if no bindings were ever written for the app. */
export async function readStoredBindings(
  executor: SqlClient,
  appId: number,
): Promise<{ bindings: SecretBinding[]; updatedAt: Date } | null> {
  const bindingRows = await queryPreparedRows<{ bindings: SecretBinding[]; updatedAt: Date }>(
    executor,
    "secret-bindings",
    SELECT_BINDINGS,
    [appId],
  );
  return bindingRows[0] ?? null;
}

export class BindingDefinitions {
  constructor(private readonly options: { settings: Settings; allowPrivateNetwork: boolean }) {}

  /** Parses a list of bindings. @throws REQUEST_INVALID with the path of the wrong field */
  read(bindings: unknown): SecretBinding[] {
    return parseSecretBindings({ bindings }, this.options.allowPrivateNetwork);
  }

  sealedKeys(executor: SqlClient, appId: number): Promise<string[]> {
    return this.options.settings.secretValues.readSealedKeys(appId, executor);
  }

  /** Replaces the app's bindings, and the list of its sealed settings. Call this method in a transaction that has locked the app. */
  async write(
    manager: EntityManager,
    caller: Caller,
    appId: number,
    input: readonly SecretBindingChange[],
  ): Promise<void> {
    const bindings = input.map(({ value: _, ...binding }) => binding);
    const sealedKeys = await this.options.settings.secretValues.readSealedKeys(appId, manager);
    await rows(manager, UPSERT_BINDINGS, [appId, JSON.stringify(bindings)]);
    await setSealedSettingKeys(manager, appId, computeSealedKeysAfterChange(sealedKeys, input));
    await deleteUnusedOauthTokens(manager, appId);
    await rows(manager, INCREASE_SECRETS_VERSION, [appId]);
    const bindingFacts = bindings.map(({ key, origin, in: place }) => ({ key, origin, in: place }));
    await recordChange(manager, caller, {
      appId,
      type: "app.secretBindings.update",
      data: { bindings: bindingFacts },
    });
  }
}
