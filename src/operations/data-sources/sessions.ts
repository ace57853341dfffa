/** Operations on the session of an app's page: sign in, sign out, read the session, set its language. */

import { type Db, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import type { AppSession, ReadAppSession } from "../../rules/app-session.js";
import { describeValue, isObject } from "../../rules/describe-value.js";
import { createAccessDeniedError } from "../../rules/entries/entry-access.js";
import { refuseField } from "../../rules/fields.js";
import { type IdOrName, parseReference } from "../../rules/reference.js";
import { createFlatShape, refuseUnknownFields, throwIfUnknownField } from "../../rules/unknown-fields.js";
import type { LogEventStore } from "../records/log-events.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import type { AppUsers } from "./app-users.js";
import type { DataSourceRows, StoredDataSource } from "./data-source-rows.js";

/** The only supported value of the field "passport" of a sign-in. */
const SIGN_IN_METHOD = "dataSource";

const AUTHORIZE_SHAPE = createFlatShape(["passport", "where", "dataSourceId", "dataSourceName"]);

function requireLanguageTag(value: unknown): string {
  try {
    if (typeof value === "string" && value.length <= 85) return Intl.getCanonicalLocales(value)[0] ?? "";
  } catch {
    // The value is not a language tag, so the code below throws an error.
  }
  refuseField("locale", "a language tag such as en-GB", value);
}

function readDataSourceReference({ dataSourceId, dataSourceName }: Record<string, unknown>): IdOrName {
  const hasDataSource = dataSourceId !== undefined && dataSourceId !== null;
  if (!hasDataSource && typeof dataSourceName === "string") return { name: dataSourceName };
  if (typeof dataSourceId === "string" || typeof dataSourceId === "number") return parseReference(dataSourceId);
  refuseField("dataSourceId", "the ID or the name of a data source", dataSourceId);
}

interface AppUserSessionsOptions {
  db: Db;
  sources: DataSourceRows;
  appUsers: AppUsers;
  logEvents: LogEventStore;
  receivedDataLimiter: ReceivedDataLimiter;
  /** Returns the session of a page, without the app user who is signed in to the page. */
  readSession: ReadAppSession;
  userChanged: (caller: Caller, appId: number) => Promise<void>;
}

export class AppUserSessions {
  constructor(private readonly options: AppUserSessionsOptions) {}

  readonly readAppSession: ReadAppSession = async (user) => {
    const [session, appUser] = await Promise.all([
      this.options.readSession(user),
      this.options.appUsers.findSignedInUser(user.credentialId, user.appId),
    ]);
    if (!appUser) return session;
    const { pending, ...dataSource } = appUser;
    return pending ? { ...session, awaits: "secondFactor" } : { ...session, entries: { dataSource } };
  };

  /**
   * Finds the data source of users. A missing data source causes the same error as a data source without users. So a page cannot find out
   * which data sources exist.
   */
  private findUserSource(appId: number, ref: IdOrName): Promise<StoredDataSource> {
    return this.options.sources.find(appId, ref).catch((error: unknown) => {
      throw error instanceof ActionError && error.status === "DATA_SOURCE_NOT_FOUND"
        ? createAccessDeniedError()
        : error;
    });
  }

  async session({ personId, credentialId, copy }: Caller, appId: number): Promise<AppSession> {
    return this.readAppSession({ appId, personId, credentialId, copy });
  }

  /**
   * Signs a user in to the caller's page. The body identifies the user's entry and contains its password.
   * @throws UNAUTHORIZED, both for a wrong password and an unknown user; DATA_SOURCE_ACCESS_DENIED for a data source without users, a
   *   missing data source, another `passport`, or a `where` without a hashed column; RATE_LIMIT_EXCEEDED, REQUEST_INVALID, OVERLOADED
   */
  async authorize(caller: Caller, appId: number, body: unknown): Promise<AppSession> {
    const { appUsers, userChanged } = this.options;
    if (!isObject(body)) refuseField("the body", "an object", body);
    const { passport = SIGN_IN_METHOD, where } = body;
    if (passport !== SIGN_IN_METHOD) {
      const message = `passport must be "${SIGN_IN_METHOD}" (got ${describeValue(passport)})`;
      throw new ActionError("DATA_SOURCE_ACCESS_DENIED", message);
    }
    // Treats a missing `where` as an empty object, which is rejected because it contains no hashed column.
    const request = appUsers.parseSignInRequest(
      await this.findUserSource(appId, readDataSourceReference(body)),
      where ?? {},
    );
    refuseUnknownFields(body, AUTHORIZE_SHAPE);
    await appUsers.signIn(caller, request);
    await userChanged(caller, appId);
    return this.session(caller, appId);
  }

  async logout(caller: Caller, appId: number): Promise<AppSession> {
    const { appUsers, userChanged } = this.options;
    throwIfUnknownField(caller);
    await appUsers.signOut(caller);
    await userChanged(caller, appId);
    return this.session(caller, appId);
  }

  /**
   * Stores the log event `session.locale.updated`. If an app user is signed in, also stores the language in the user's session.
   * @throws REQUEST_INVALID
   */
  async setLocale(caller: Caller, appId: number, body: unknown): Promise<AppSession> {
    const { db, appUsers, logEvents, receivedDataLimiter } = this.options;
    const locale = requireLanguageTag(isObject(body) ? body["locale"] : undefined);
    receivedDataLimiter.countRows(caller, appId, locale.length);
    throwIfUnknownField(caller);
    const user = await appUsers.findUserOfCaller(caller);
    const eventSubject = user === null ? {} : { dataSourceId: user.dataSourceId, dataSourceEntryId: user.id };
    await rows(db, "UPDATE app_user_session SET locale = $2 WHERE credential_id = $1", [caller.credentialId, locale]);
    const ids = {
      userId: null,
      dataSourceId: null,
      dataSourceEntryId: null,
      appNotificationId: null,
      sessionId: null,
      ...eventSubject,
    };
    await logEvents.store(caller, appId, { type: "session.locale.updated", data: { locale }, ...ids });
    return this.session(caller, appId);
  }
}
