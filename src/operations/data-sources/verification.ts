/**
 * Implements `Svc.Session.verify`: sends a code to the address of an app user, and signs the user in when the page sends the correct code
 * back. If no user has the address, the service does the same work, so that its response time does not reveal which addresses exist.
 */
import type { Db } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import { getAddressBlock } from "../../rules/address-block.js";
import type { EntryData } from "../../rules/entries/entry-input.js";
import { createTextNormalizer } from "../../rules/entries/hooks.js";
import { parseReference } from "../../rules/reference.js";
import { refuseUnknownFields } from "../../rules/unknown-fields.js";
import {
  buildVerificationMessage,
  parseVerificationRequest,
  parseVerificationRules,
  VERIFICATION_SETTING_KEY,
  VERIFICATION_SHAPE,
  type VerificationChannel,
  type VerificationRequest,
  type VerificationRules,
} from "../../rules/verification.js";
import type { OutboxWriter } from "../communicate/outbox-writer.js";
import type { Settings } from "../settings/settings.js";
import type { AppUsers } from "./app-users.js";
import type { DataSourceRows, StoredDataSource } from "./data-source-rows.js";
import type { ReadRows } from "./read-pool.js";
import { type AppUserSignInAttempts, hashJsonValues } from "./sign-in-attempts.js";
import { createVerificationCode, VerificationCodes } from "./verification-codes.js";

/** Response to a request for a code. The response is the same whether or not the service has sent a code. */
export interface VerificationCodeSentResponse {
  status: "CODE_SENT";
  /** Time at which the code expires, ISO 8601. */
  expiresAt: string;
}

/** Number of wrong codes for one recipient from all network addresses in ten minutes. Then each network address has only one attempt. */
const CODE_FAILURES_PER_RECIPIENT_MAX = 100;

/* Selects the first entry with the address, as a sign-in with a password does. */
const SELECT_ENTRY_BY_VALUE = `
  WITH found AS MATERIALIZED (
    SELECT id, "order" FROM data_source_entry WHERE app_id = $1 AND data_source_id = $2 AND doc @> $3::jsonb)
  SELECT id, data FROM data_source_entry
   WHERE app_id = $1 AND id = (SELECT id FROM found ORDER BY "order", id LIMIT 1)`;

interface CodeRecipient {
  source: StoredDataSource;
  column: string;
  by: VerificationChannel;
  entryId: number | null;
  address: string;
  purpose: "validate" | "2fa";
  hash: Buffer;
}

interface AppUserVerificationOptions {
  db: Db;
  read: ReadRows;
  sources: DataSourceRows;
  appUsers: AppUsers;
  attempts: AppUserSignInAttempts;
  settings: Pick<Settings, "readAll">;
  outboxWriter: OutboxWriter;
  userChanged: (caller: Caller, appId: number) => Promise<void>;
}

export class AppUserVerification {
  private readonly codes = new VerificationCodes({ db: this.options.db });

  constructor(private readonly options: AppUserVerificationOptions) {}

  private async readRules(appId: number) {
    return parseVerificationRules((await this.options.settings.readAll(appId)).get(VERIFICATION_SETTING_KEY));
  }

  /** Finds the data source that the app's setting names. @throws DATA_SOURCE_NOT_FOUND, for example after the data source was renamed */
  private async findDataSource(appId: number, { dataSource }: VerificationRules): Promise<StoredDataSource> {
    try {
      return await this.options.sources.find(appId, parseReference(dataSource));
    } catch (error) {
      if (!(error instanceof ActionError) || error.status !== "DATA_SOURCE_NOT_FOUND") throw error;
      const message = `the setting ${VERIFICATION_SETTING_KEY}.dataSource must be the ID or the name of a data source of this app`;
      throw new ActionError("DATA_SOURCE_NOT_FOUND", message);
    }
  }

  private async findRecipientByAddress(
    source: StoredDataSource,
    column: string,
    channel: VerificationChannel,
    input: string,
  ): Promise<CodeRecipient> {
    const normalizedValue = createTextNormalizer(source.hooks, null)({ [column]: input });
    const values = [source.appId, source.id, JSON.stringify(normalizedValue)];
    const [entry] = await this.options.read<{ id: number; data: EntryData }>(
      source.appId,
      SELECT_ENTRY_BY_VALUE,
      values,
    );
    const address = String(normalizedValue[column]);
    const hash = hashJsonValues("validate", source.appId, source.id, channel, address);
    return { source, column, by: channel, entryId: entry?.id ?? null, address, purpose: "validate", hash };
  }

  /** Returns the signed-in user as recipient of a code. @throws UNAUTHORIZED if there is none, REQUEST_INVALID without a phone number */
  private async findSignedInRecipient(
    caller: Caller,
    source: StoredDataSource,
    column: string,
  ): Promise<CodeRecipient> {
    const user = await this.options.appUsers.findSignedInUser(caller.credentialId, source.appId);
    if (user?.dataSourceId !== source.id)
      throw new ActionError("UNAUTHORIZED", "no user of the data source for verifications is signed in to this page");
    const address = user.data[column];
    if (typeof address !== "string" || address === "") {
      throw new ActionError("REQUEST_INVALID", "the user who is signed in has no phone number");
    }
    const hash = hashJsonValues("2fa", source.appId, source.id, user.id);
    return { source, column, by: "sms", entryId: user.id, address, purpose: "2fa", hash };
  }

  private async findCodeRecipient(
    caller: Caller,
    appId: number,
    rules: VerificationRules,
    { by, address }: VerificationRequest,
  ): Promise<CodeRecipient> {
    const column = rules.columns[by];
    if (column === null)
      throw new ActionError(
        "REQUEST_INVALID",
        `this app cannot verify users by "${by}"; set ${VERIFICATION_SETTING_KEY}.${by} to the column with the users' ${by === "email" ? "e-mail addresses" : "phone numbers"}`,
      );
    if (address !== null && by === "sms" && rules.secondFactor) {
      throw new ActionError(
        "REQUEST_INVALID",
        '"sms" is not allowed, because this app uses text messages as the second factor; sign in with a password or a code by e-mail, then send {"secondFactor": "sms"}',
      );
    }
    const source = await this.findDataSource(appId, rules);
    return address === null
      ? this.findSignedInRecipient(caller, source, column)
      : this.findRecipientByAddress(source, column, by, address);
  }

  /**
   * Stores a code and the message that contains the code. If no user has the address, rolls the message back. So the response time does not
   * reveal which addresses exist.
   */
  private async storeCode(caller: Caller, rules: VerificationRules, recipient: CodeRecipient): Promise<void> {
    const { db, outboxWriter } = this.options;
    const { source, by, entryId, address, purpose, hash } = recipient;
    const { appId, id: dataSourceId } = source;
    const code = createVerificationCode();
    // Calls `prepare` before the transaction, because `prepare` needs another database connection. If all transactions
    // waited for such a connection, none could end.
    const sendCode = await outboxWriter.prepare(
      caller,
      appId,
      [buildVerificationMessage(rules, by, address, code)],
      purpose,
    );
    await db.transaction(async (manager) => {
      const { credentialId } = caller;
      await this.codes.save(manager, code, { credentialId, appId, purposeHash: hash, dataSourceId, entryId, address });
      await manager.query("SAVEPOINT unsent");
      await sendCode(manager);
      if (entryId === null) await manager.query("ROLLBACK TO SAVEPOINT unsent");
    });
  }

  private async sendCodeToRecipient(
    caller: Caller,
    rules: VerificationRules,
    recipient: CodeRecipient,
  ): Promise<VerificationCodeSentResponse> {
    const { appId } = recipient.source;
    // Builds a message only to validate the address. So an invalid address is rejected before the request is counted,
    // even if no user has this address.
    buildVerificationMessage(rules, recipient.by, recipient.address, "000000");
    const requester =
      caller.address === undefined ? `credential ${caller.credentialId}` : getAddressBlock(caller.address);
    await this.codes.countRequest({ appId, sender: requester, to: [recipient.by, recipient.address] });
    await this.storeCode(caller, rules, recipient);
    return { status: "CODE_SENT", expiresAt: new Date(Date.now() + this.codes.validSeconds * 1_000).toISOString() };
  }

  /**
   * Checks a code, and signs the user in or completes the sign-in with the second factor.
   * @throws UNAUTHORIZED for a wrong or expired code or an unknown address; RATE_LIMIT_EXCEEDED
   */
  private async redeemCode(
    caller: Caller,
    { source, column, by, purpose, hash }: CodeRecipient,
    code: string,
  ): Promise<void> {
    const { appUsers, attempts, userChanged } = this.options;
    let usedCode: { entryId: number; address: string } | null = null;
    const attemptVerification = async () => {
      usedCode = await this.codes.use(caller.credentialId, hash, code);
      return usedCode !== null;
    };
    const isCorrectCode = await attempts.runCountedAttempt(
      source.appId,
      [hash.toString("hex")],
      caller,
      attemptVerification,
      CODE_FAILURES_PER_RECIPIENT_MAX,
    );
    const { entryId, address } = usedCode ?? { entryId: 0, address: "" };
    const addressProof = { entryId, column, address, by };
    const isProven =
      isCorrectCode &&
      (purpose === "2fa"
        ? await appUsers.addProof(caller, source, addressProof)
        : await appUsers.signInByProof(caller, source, addressProof));
    if (!isProven)
      throw new ActionError(
        "UNAUTHORIZED",
        "the code is wrong, expired or already used; check the code, or request a new one",
      );
    await userChanged(caller, source.appId);
  }

  async needsSecondFactor(appId: number): Promise<boolean> {
    return (await this.readRules(appId))?.secondFactor ?? false;
  }

  /**
   * Without `code`, sends a code. With the correct `code`, signs the user in or completes the sign-in with the second factor, and returns
   * null.
   * @throws ActionError REQUEST_INVALID if the app does not use verification; UNAUTHORIZED, RATE_LIMIT_EXCEEDED, SETTINGS_INVALID,
   * DATA_SOURCE_NOT_FOUND, OVERLOADED
   */
  async verify(caller: Caller, appId: number, body: unknown): Promise<VerificationCodeSentResponse | null> {
    const request = parseVerificationRequest(body);
    const rules = await this.readRules(appId);
    if (!rules)
      throw new ActionError(
        "REQUEST_INVALID",
        `this app does not use verification; an editor can enable it with the setting ${VERIFICATION_SETTING_KEY}`,
      );
    const recipient = await this.findCodeRecipient(caller, appId, rules, request);
    refuseUnknownFields(body, VERIFICATION_SHAPE);
    if (request.code === null) return this.sendCodeToRecipient(caller, rules, recipient);
    await this.redeemCode(caller, recipient, request.code);
    return null;
  }
}
