/** Builds the URLs of an action's HTTP triggers for editors. Stores the secrets that the URLs of some triggers contain. */
import { randomBytes, timingSafeEqual } from "node:crypto";
import type { EntityManager } from "typeorm";
import type { HttpMethod, Trigger } from "../../data/action-types.js";
import { type Db, rows } from "../../data/database.js";
import { createBoundedCache } from "../../engine/bounded-cache.js";
import { decryptText, encryptText } from "../../engine/cipher.js";
import { type Caller, mayPerformOnApp } from "../../rules/access.js";
import type { DataKeys } from "../settings/data-keys.js";
import { listHttpTriggerConditions, type TriggerRoute } from "./routes.js";

/** URL of one HTTP trigger. */
export interface TriggerEndpoint {
  /** HTTP method that the trigger accepts; null if the trigger accepts all methods. */
  method: HttpMethod | null;
  /** URL that runs the live version of the action. Contains the secret if the trigger has one. */
  url: string;
  /** URL that runs the draft. It contains no secret: editors send their own credential instead. */
  draftUrl: string;
}

type ActionWithTriggers = { id: number; appId: number; triggers: Trigger[] };

const SECRET_BYTES = 32;
const DECRYPTED_SECRETS_MAX = 10_000;

const createSecretLabel = (actionId: number): string => `http-secret:${actionId}`;
const hasSecretTrigger = (triggers: readonly Trigger[]): boolean =>
  listHttpTriggerConditions(triggers).some(({ auth }) => auth.type === "secret");

const SELECT_SECRETS = `
  SELECT wanted.id, secret.action_id AS "masterId", secret.sealed FROM unnest($1::bigint[]) AS wanted (id)
    JOIN action ON action.id = wanted.id JOIN http_secret AS secret ON secret.action_id = coalesce(action.master_id, action.id)`;
const UPSERT_SECRET = `
  INSERT INTO http_secret (action_id, sealed) VALUES ($1, $2)
  ON CONFLICT (action_id) DO UPDATE SET sealed = CASE WHEN $3 THEN excluded.sealed ELSE http_secret.sealed END`;

interface TriggerEndpointsOptions {
  db: Db;
  dataKeys: DataKeys;
  baseUrl: string;
}

export class TriggerEndpoints {
  /** Cache of decrypted secrets. A key consists of the draft's ID and the encrypted bytes. */
  private readonly decryptedSecrets = createBoundedCache<string, string>(DECRYPTED_SECRETS_MAX);

  constructor(private readonly options: TriggerEndpointsOptions) {}

  private async decryptSecret(appId: number, masterId: number, sealedSecret: Buffer): Promise<string | null> {
    const key = `${masterId} ${sealedSecret.toString("base64")}`;
    const decryptedSecret = this.decryptedSecrets.get(key);
    if (decryptedSecret !== undefined) return decryptedSecret;
    const dataKey = await this.options.dataKeys.find(appId);
    if (!dataKey) return null;
    const secret = decryptText(dataKey, sealedSecret, createSecretLabel(masterId));
    this.decryptedSecrets.set(key, secret);
    return secret;
  }

  /** Stores a new random secret for a draft. If the draft already has a secret, replaces it only if `shouldReplace` is true. */
  private async writeSecret(
    manager: EntityManager,
    appId: number,
    masterId: number,
    shouldReplace: boolean,
  ): Promise<void> {
    const dataKey = await this.options.dataKeys.findOrCreate(appId, manager);
    const sealedSecret = encryptText(
      dataKey,
      randomBytes(SECRET_BYTES).toString("base64url"),
      createSecretLabel(masterId),
    );
    await rows(manager, UPSERT_SECRET, [masterId, sealedSecret, shouldReplace]);
  }

  private async addEndpoints<A extends ActionWithTriggers>(
    actions: readonly A[],
  ): Promise<(A & { endpoints?: TriggerEndpoint[] })[]> {
    const { db, baseUrl } = this.options;
    const ids = actions.filter(({ triggers }) => hasSecretTrigger(triggers)).map(({ id }) => id);
    const secretRows =
      ids.length === 0 ? [] : await rows<{ id: number; masterId: number; sealed: Buffer }>(db, SELECT_SECRETS, [ids]);
    const secrets = new Map(secretRows.map(({ id, ...secret }) => [id, secret]));
    return Promise.all(
      actions.map(async (action) => {
        const { id, appId, triggers } = action;
        const httpConditions = listHttpTriggerConditions(triggers);
        if (httpConditions.length === 0) return action;
        const secretRow = secrets.get(id);
        const secret = secretRow ? await this.decryptSecret(appId, secretRow.masterId, secretRow.sealed) : null;
        const endpoints = httpConditions.map(({ method, path, auth }) => ({
          method: method ?? null,
          url: `${baseUrl}/h/${appId}/${encodeURI(path)}${auth.type === "secret" ? `/${secret}` : ""}`,
          draftUrl: `${baseUrl}/h/${appId}/draft/${encodeURI(path)}`,
        }));
        return { ...action, endpoints };
      }),
    );
  }

  /** Adds the URLs if the caller can edit all these actions. Other callers get no URLs, because some contain secrets. */
  async addUrls<A extends ActionWithTriggers>(caller: Caller, actions: readonly A[]): Promise<A[]> {
    return actions.every(({ appId }) => mayPerformOnApp(caller, "updateAction", appId))
      ? this.addEndpoints(actions)
      : [...actions];
  }

  async addUrlsToOne<A extends ActionWithTriggers>(caller: Caller, action: A): Promise<A> {
    return (await this.addUrls(caller, [action]))[0]!;
  }

  /** Creates a secret for a draft that needs one and has none. Call this function in the transaction that writes the draft. */
  async ensureSecret(manager: EntityManager, appId: number, masterId: number, triggers: readonly Trigger[]) {
    if (!hasSecretTrigger(triggers)) return;
    const secretRows = await rows(manager, "SELECT FROM http_secret WHERE action_id = $1", [masterId]);
    if (secretRows.length === 0) await this.writeSecret(manager, appId, masterId, false);
  }

  /** True if the segment is the secret of the URL. Compares in constant time, so that the duration does not reveal the secret. */
  async isSecretSegment(
    { masterId, sealed: sealedSecret }: TriggerRoute,
    appId: number,
    segment: string,
  ): Promise<boolean> {
    const secret = sealedSecret && (await this.decryptSecret(appId, masterId, sealedSecret));
    if (!secret) return false;
    const [expected, input] = [Buffer.from(secret), Buffer.from(segment)];
    return expected.length === input.length && timingSafeEqual(expected, input);
  }

  /**
   * Replaces the secret in the URLs of a draft and its live version; the old URLs stop working. Returns false if the draft has no secret
   * and none of the triggers needs one.
   */
  async replaceSecret(manager: EntityManager, appId: number, masterId: number, triggers: readonly Trigger[]) {
    const secretRows = await rows(manager, "SELECT FROM http_secret WHERE action_id = $1", [masterId]);
    if (secretRows.length === 0 && !hasSecretTrigger(triggers)) return false;
    await this.writeSecret(manager, appId, masterId, true);
    return true;
  }
}
