/**
 * Sessions of pages that run an app's actions: live pages of visitors, and the viewer and debug pages of editors. All code in a page can
 * read the page's token. So the token is valid only for this app, and expires soon.
 */
import { type Db, rows, type SqlClient } from "../../data/database.js";
import type { DiskSpaceMonitor } from "../../engine/disk-space.js";
import { createTokenBucket } from "../../engine/token-bucket.js";
import { ActionError, createRateLimitError } from "../../errors.js";
import {
  LOGGED_PAGE_VIEWS_PER_APP_AND_MINUTE,
  LOGGED_PAGE_VIEWS_PER_VIEWER_AND_MINUTE,
  NEW_VISITOR_SESSIONS_PER_ADDRESS_AND_MINUTE,
  RATE_WINDOW_MS,
  VISITOR_SESSION_LIFETIME_MS,
} from "../../limits.js";
import { type Caller, mayPerformOnApp } from "../../rules/access.js";
import { getAddressBlock } from "../../rules/address-block.js";
import { createAppViewEvent } from "../../rules/app-events.js";
import type { Credentials, NewCredential } from "../access/credentials.js";
import { generateSecret, generateToken, hashToken } from "../access/tokens.js";
import type { LogEventCause, LogEventStore } from "../records/log-events.js";
import { createVisitorSessionPruner, hashVisitorAddress } from "./visitors.js";

const PREVIEW_LIFETIME_MS = 2 * 60 * 60 * 1000;

/** Lifetime of a one-time code in seconds. The browser exchanges the code immediately after a redirect. */
const CODE_LIFETIME_SECONDS = 60;

export interface PageSession {
  token: string;
  caller: Caller;
  app: { id: number; name: string };
}

/** Page that an editor opens: the viewer of an app, or the debug page of an action. */
export interface PreviewPage {
  appId: number;
  /** ID of the action whose debug page is opened; null for the viewer of the app. */
  actionId: number | null;
}

/* Deletes up to 10 expired page sessions. Executed whenever a page session starts, so that no separate cleanup is needed. */
const DELETE_EXPIRED_PAGE_SESSIONS = `
  DELETE FROM credential WHERE id IN
    (SELECT id FROM credential WHERE page_session AND expires_at < now() ORDER BY expires_at LIMIT 10 FOR UPDATE SKIP LOCKED)`;

/* Exchanges a code for a session in one statement, so that a code can be used only once. */
const REDEEM_PREVIEW_CODE = `
  UPDATE credential SET hash = $2
   WHERE hash = $1 AND page_session AND kind = 'viewer' AND app_id = $3 AND action_id IS NOT DISTINCT FROM $4::bigint
     AND created_at > now() - interval '${CODE_LIFETIME_SECONDS} seconds' RETURNING id`;

interface PageSessionsOptions {
  db: Db;
  credentials: Credentials;
  logEvents: LogEventStore;
  diskSpace: DiskSpaceMonitor;
}

export class PageSessions {
  private readonly sessionBucket = createTokenBucket({
    limit: NEW_VISITOR_SESSIONS_PER_ADDRESS_AND_MINUTE,
    windowMs: RATE_WINDOW_MS,
  });
  private readonly viewsPerViewerBucket = createTokenBucket({
    limit: LOGGED_PAGE_VIEWS_PER_VIEWER_AND_MINUTE,
    windowMs: RATE_WINDOW_MS,
  });
  private readonly removeOldestVisitors = createVisitorSessionPruner();
  private readonly viewsPerAppBucket = createTokenBucket({
    limit: LOGGED_PAGE_VIEWS_PER_APP_AND_MINUTE,
    windowMs: RATE_WINDOW_MS,
  });

  constructor(private readonly options: PageSessionsOptions) {}

  /** Logs that a page was opened. Logs nothing if this viewer or the app has too many page views, or if the disk is nearly full. */
  private async emitPageView(
    executor: SqlClient,
    emitter: LogEventCause,
    appId: number,
    viewLimitKey: string,
  ): Promise<void> {
    const { logEvents, diskSpace } = this.options;
    if (
      diskSpace.level() !== "enough" ||
      this.viewsPerViewerBucket.takeTokens(`${appId} ${viewLimitKey}`) > 0 ||
      this.viewsPerAppBucket.takeTokens(String(appId)) > 0
    )
      return;
    await logEvents.emit(executor, emitter, appId, createAppViewEvent(emitter.kind === "live" ? "live" : "viewer"));
  }

  private async findApp(appId: number): Promise<{ id: number; name: string; published: boolean } | null> {
    const sql = "SELECT id, name, published_at IS NOT NULL AS published FROM app WHERE id = $1";
    const [app] = await rows<{ id: number; name: string; published: boolean }>(this.options.db, sql, [appId]);
    return app ?? null;
  }

  private countNewSession(limitKey: string): void {
    const retryAfter = this.sessionBucket.takeTokens(limitKey);
    if (retryAfter > 0) {
      const message = `too many new page sessions from this network address or credential; try again in ${retryAfter} s`;
      throw createRateLimitError(message, retryAfter);
    }
  }

  /** Creates the page's credential, and returns its token. @param viewLimitKey key of the limit on logged views; null to log no view */
  private async createPageCredential(
    session: Omit<NewCredential, "isPageSession"> & { kind: "viewer" | "live"; appId: number },
    viewLimitKey: string | null,
  ): Promise<string> {
    const { db, credentials } = this.options;
    return db.transaction(async (manager: SqlClient) => {
      await rows(manager, DELETE_EXPIRED_PAGE_SESSIONS);
      if (session.visitorAddressHash)
        await this.removeOldestVisitors(manager, session.appId, session.visitorAddressHash);
      const { id, token } = await credentials.issue({ ...session, isPageSession: true }, manager);
      const { kind, appId, personId = null } = session;
      const emitter = { kind, credentialId: id, personId, runId: null };
      if (viewLimitKey !== null) await this.emitPageView(manager, emitter, appId, viewLimitKey);
      return token;
    });
  }

  private async openSession(token: string, app: { id: number; name: string }): Promise<PageSession> {
    const caller = await this.options.credentials.resolve(token);
    if (!caller) throw new ActionError("NOT_FOUND");
    return { token, caller, app };
  }

  private createVisitorCredential(
    appId: number,
    address: string,
    expiresAt: Date,
    viewLimitKey: string | null,
  ): Promise<string> {
    const visitorAddressHash = hashVisitorAddress(appId, address);
    return this.createPageCredential(
      { kind: "live", appId, name: "visitor", expiresAt, visitorAddressHash },
      viewLimitKey,
    );
  }

  /** Checks that the caller may open the viewer and debug pages of the app. Returns the caller and the app. */
  private async checkPreview(
    caller: Caller | null,
    { appId }: PreviewPage,
  ): Promise<{ caller: Caller; app: PageSession["app"] }> {
    if (!caller) throw new ActionError("UNAUTHORIZED");
    if (!mayPerformOnApp(caller, "previewApp", appId)) throw new ActionError("FORBIDDEN");
    const app = await this.findApp(appId);
    if (!app) throw new ActionError("APP_NOT_FOUND");
    return { caller, app };
  }

  /** Creates the session of a viewer or debug page. Returns its token or, if `secret` (a one-time code) is set, this code. */
  private async createPreviewCredential(
    caller: Caller,
    { appId, actionId }: PreviewPage,
    secret?: string,
  ): Promise<string> {
    this.countNewSession(`credential ${caller.credentialId}`);
    const { personId, credentialId: parentId } = caller;
    const expiresAt = new Date(Date.now() + PREVIEW_LIFETIME_MS);
    const name = actionId === null ? "app viewer" : "debug page";
    const viewLimitKey = actionId === null ? `person ${personId}` : null;
    return this.createPageCredential(
      { kind: "viewer", appId, personId, parentId, actionId, name, expiresAt, secret },
      viewLimitKey,
    );
  }

  /**
   * Checks that the caller may open the page.
   * @throws UNAUTHORIZED; FORBIDDEN if the caller's role does not allow previews of the app; APP_NOT_FOUND (only for administrators)
   */
  async checkAccess(caller: Caller | null, preview: PreviewPage): Promise<void> {
    await this.checkPreview(caller, preview);
  }

  /**
   * Creates a session for an anonymous visitor of a published app.
   * @throws NOT_FOUND if there is no published app with this ID; RATE_LIMIT_EXCEEDED if the network address created too many sessions
   */
  async openVisitorSession(appId: number, address: string): Promise<PageSession> {
    const app = await this.findApp(appId);
    if (!app?.published) throw new ActionError("NOT_FOUND", "there is no published app with this ID");
    const viewLimitKey = getAddressBlock(address);
    this.countNewSession(viewLimitKey);
    const expiresAt = new Date(Date.now() + VISITOR_SESSION_LIFETIME_MS);
    return this.openSession(await this.createVisitorCredential(appId, address, expiresAt, viewLimitKey), app);
  }

  /** Counts a request for a visitor's session by network address. @throws RATE_LIMIT_EXCEEDED */
  countVisitorSession(address: string) {
    this.countNewSession(getAddressBlock(address));
  }

  /**
   * Creates a session for a visitor of a page on another origin, and returns the session's token.
   * @throws RATE_LIMIT_EXCEEDED
   */
  startVisitorSession(appId: number, address: string, expiresAt: Date) {
    return this.createVisitorCredential(appId, address, expiresAt, null);
  }

  /**
   * Creates a session of a viewer or debug page for an editor of the app.
   * @throws the errors of `checkAccess`; RATE_LIMIT_EXCEEDED
   */
  async openPreviewSession(caller: Caller | null, preview: PreviewPage): Promise<PageSession> {
    const { caller: editor, app } = await this.checkPreview(caller, preview);
    return this.openSession(await this.createPreviewCredential(editor, preview), app);
  }

  /**
   * Creates a session for a viewer or debug page on another origin. Returns a one-time code, which the page must
   * exchange for the session's token within a minute. The code itself gives no access.
   * @throws the errors of `openPreviewSession`
   */
  async createCode(caller: Caller | null, preview: PreviewPage): Promise<string> {
    const { caller: editor } = await this.checkPreview(caller, preview);
    return this.createPreviewCredential(editor, preview, generateSecret("once"));
  }

  /** Exchanges a one-time code for its session. Returns null if the code was used, has expired, or belongs to another page. */
  async redeem(code: string, { appId, actionId }: PreviewPage): Promise<PageSession | null> {
    const token = generateToken("viewer");
    const values = [hashToken(code), hashToken(token), appId, actionId];
    const redeemedRows = await rows(this.options.db, REDEEM_PREVIEW_CODE, values);
    const app = redeemedRows.length > 0 ? await this.findApp(appId) : null;
    return app && this.openSession(token, app);
  }

  /** Ends the sessions of all pages that were opened with this credential (a session or token of a person). */
  async endSession(credentialId: number): Promise<void> {
    const { db, credentials } = this.options;
    const sql =
      "UPDATE credential SET revoked_at = now() WHERE parent_id = $1 AND page_session AND revoked_at IS NULL RETURNING id";
    if ((await rows(db, sql, [credentialId])).length > 0) await credentials.clearCallerCaches();
  }
}
