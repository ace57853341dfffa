/**
 * Sign-in with device codes (RFC 8628): a program without a browser shows a short code, and a person enters this code on another device to
 * authorize the program.
 */
import { randomInt } from "node:crypto";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { generateSecret, hashToken } from "../access/tokens.js";
import { OauthError } from "./oauth-failure.js";

/** Characters of user codes. Without vowels, codes form no words (RFC 8628, section 6.1). */
const USER_CODE_ALPHABET = "BCDFGHJKLMNPQRSTVWXZ";
const USER_CODE_LENGTH = 8;
const CODE_LIFETIME_SECONDS = 600;
const POLL_INTERVAL_SECONDS = 5;

export interface DeviceRequest {
  clientId: string;
  clientName: string;
  scopes: string[];
  appId: number | null;
}

export interface DeviceAuthorization {
  deviceCode: string;
  userCode: string;
  expiresIn: number;
  interval: number;
}

/** Returns a code in its stored form: upper case, without dashes. People can type lower case or omit the dash. */
const normalizeUserCode = (code: string): string => code.toUpperCase().replaceAll(/[^A-Z]/g, "");

function createUserCode(): string {
  let code = "";
  for (let at = 0; at < USER_CODE_LENGTH; at += 1) code += USER_CODE_ALPHABET[randomInt(USER_CODE_ALPHABET.length)];
  return code;
}

const createUsedCodeError = () =>
  new OauthError("invalid_grant", "the device code is unknown or was already used; request a new one");

export class OauthDeviceRequests {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  async start(clientId: string, scopes: readonly string[], appId: number | null): Promise<DeviceAuthorization> {
    const [deviceCode, userCode] = [generateSecret("svc_device"), createUserCode()];
    await rows(this.#db, "DELETE FROM oauth_device WHERE expires_at < now() - interval '1 hour'");
    await rows(
      this.#db,
      `INSERT INTO oauth_device (hash, user_code, client_id, scopes, app_id, expires_at)
       VALUES ($1, $2, $3, $4, $5, now() + $6 * interval '1 second')`,
      [hashToken(deviceCode), userCode, clientId, scopes, appId, CODE_LIFETIME_SECONDS],
    );
    const shownCode = `${userCode.slice(0, 4)}-${userCode.slice(4)}`;
    return { deviceCode, userCode: shownCode, expiresIn: CODE_LIFETIME_SECONDS, interval: POLL_INTERVAL_SECONDS };
  }

  /** Returns the request with this user code; null if the code is unknown or has expired, or if a person has already decided. */
  async find(userCode: string): Promise<DeviceRequest | null> {
    const [device] = await rows<DeviceRequest>(
      this.#db,
      `SELECT d.client_id AS "clientId", c.name AS "clientName", d.scopes, d.app_id AS "appId"
         FROM oauth_device d JOIN oauth_client c ON c.id = d.client_id
        WHERE d.user_code = $1 AND d.expires_at > now() AND d.grant_id IS NULL AND NOT d.is_denied`,
      [normalizeUserCode(userCode)],
    );
    return device ?? null;
  }

  /**
   * Stores a person's decision about the request with this user code.
   * @param grantId grant that the person created; null if the person denied access
   * @returns false if the code is unknown or has expired, or if there is already a decision
   */
  async decide(userCode: string, grantId: number | null): Promise<boolean> {
    const decidedRows = await rows(
      this.#db,
      `UPDATE oauth_device SET grant_id = $2, is_denied = $2::bigint IS NULL
        WHERE user_code = $1 AND expires_at > now() AND grant_id IS NULL AND NOT is_denied RETURNING 1 AS matched`,
      [normalizeUserCode(userCode), grantId],
    );
    return decidedRows.length > 0;
  }

  /**
   * Returns the ID of the grant that a person has created for the program with this device code.
   * @throws OauthError in all other cases, for example while the person has not decided yet
   */
  async poll(deviceCode: string, clientId: string): Promise<number> {
    const [device] = await rows<{
      grantId: number | null;
      isDenied: boolean;
      isExpired: boolean;
      isPolledTooSoon: boolean;
    }>(
      this.#db,
      `WITH before AS (SELECT hash, polled_at FROM oauth_device WHERE hash = $1 AND client_id = $2 FOR UPDATE)
       UPDATE oauth_device d SET polled_at = now() FROM before WHERE d.hash = before.hash
       RETURNING d.grant_id AS "grantId", d.is_denied AS "isDenied", d.expires_at <= now() AS "isExpired",
                 before.polled_at > now() - interval '1 second' * $3 AS "isPolledTooSoon"`,
      [hashToken(deviceCode), clientId, POLL_INTERVAL_SECONDS - 1],
    );
    if (!device) throw createUsedCodeError();
    if (device.isExpired) throw new OauthError("expired_token", "the device code has expired; request a new one");
    if (device.isDenied) throw new OauthError("access_denied", "the person denied access");
    if (device.isPolledTooSoon)
      throw new OauthError("slow_down", `the program polls too often; poll every ${POLL_INTERVAL_SECONDS} seconds`);
    if (device.grantId === null)
      throw new OauthError(
        "authorization_pending",
        "the person has neither allowed nor denied access yet; poll again later",
      );
    return device.grantId;
  }

  /** Deletes a device code for which tokens are issued. @throws OauthError if another request has already used the code */
  async redeem(deviceCode: string, executor: SqlClient): Promise<void> {
    const sql = "DELETE FROM oauth_device WHERE hash = $1 RETURNING 1 AS matched";
    if ((await rows(executor, sql, [hashToken(deviceCode)])).length === 0) throw createUsedCodeError();
  }
}
