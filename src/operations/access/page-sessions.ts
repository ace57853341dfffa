/**
 * Sessions of an app's own pages: a visitor's of the live app, an editor's of the app viewer. Knows no cookie and no page.
 *
 * Neither is the session that it was given for: a page that runs an app's actions holds a token of that app and copy alone, so that
 * no action acts with the rights of the editor who looks at it.
 */
import type { DataSource } from "typeorm";
import { type Executor, rows } from "../../data/database.js";
import type { DiskRoom } from "../../engine/disk-room.js";
import { createTokenBucket } from "../../engine/token-bucket.js";
import { ActionError } from "../../errors.js";
import { PAGE_SESSIONS_PER_ADDRESS, RATE_WINDOW_MS, VIEWS_PER_APP, VIEWS_PER_VIEWER } from "../../limits.js";
import { type Caller, mayEnter } from "../../rules/access.js";
import { addressBlock } from "../../rules/address-block.js";
import { appView } from "../../rules/app-events.js";
import type { Emitter, LogEvents } from "../triggers/log-events.js";
import type { Credentials } from "./credentials.js";

const DAY_MS = 24 * 60 * 60 * 1000;
const VISIT_MS = 30 * DAY_MS;
const PREVIEW_MS = DAY_MS / 2;

/** A token found among those that came along, or a new one. */
export interface PageSession {
  token: string;
  caller: Caller;
  app: { id: number; name: string };
  /** null: it came along. */
  made: { expiresAt: Date } | null;
}

/** A token that came along, and who it stands for. */
export interface Held {
  token: string;
  caller: Caller;
}

/* Each new session clears away a few dead ones. */
const SWEEP = `
  DELETE FROM credential WHERE id IN
    (SELECT id FROM credential WHERE page_session AND expires_at < now() ORDER BY expires_at LIMIT 10 FOR UPDATE SKIP LOCKED)`;

export type PageSessions = ReturnType<typeof createPageSessions>;

export function createPageSessions(options: {
  db: DataSource;
  credentials: Credentials;
  logEvents: LogEvents;
  room: DiskRoom;
}) {
  const { db, credentials, logEvents, room } = options;
  const mints = createTokenBucket({ limit: PAGE_SESSIONS_PER_ADDRESS, windowMs: RATE_WINDOW_MS });
  const viewers = createTokenBucket({ limit: VIEWS_PER_VIEWER, windowMs: RATE_WINDOW_MS });
  const views = createTokenBucket({ limit: VIEWS_PER_APP, windowMs: RATE_WINDOW_MS });

  /** Tells of an opened page, unless this viewer or all of them together open more than a person looks at: a page is served all the same. */
  async function emitView(executor: Executor, emitter: Emitter, appId: number, viewer: string): Promise<void> {
    if (room.level() !== "enough" || viewers.take(`${appId} ${viewer}`) > 0 || views.take(String(appId)) > 0) return;
    await logEvents.emit(executor, emitter, appId, appView(emitter.kind === "live" ? "live" : "viewer"));
  }

  async function appOf(appId: number): Promise<{ id: number; name: string; published: boolean } | null> {
    const sql = "SELECT id, name, published_at IS NOT NULL AS published FROM app WHERE id = $1";
    const [app] = await rows<{ id: number; name: string; published: boolean }>(db, sql, [appId]);
    return app ?? null;
  }

  function boundMinting(address: string): void {
    const retryAfter = mints.take(address);
    if (retryAfter > 0) throw new ActionError("RATE_LIMIT_EXCEEDED", "too many new sessions", { retryAfter });
  }

  async function mint(
    kind: "viewer" | "live",
    { appId, personId, viewer }: { appId: number; personId: number | null; viewer: string },
    expiresAt: Date,
  ): Promise<Held> {
    const token = await db.transaction(async (manager: Executor) => {
      await rows(manager, SWEEP);
      const name = kind === "live" ? "visitor" : "app viewer";
      const issued = await credentials.issue({ kind, appId, personId, name, expiresAt }, manager);
      await rows(manager, "UPDATE credential SET page_session = true WHERE id = $1", [issued.id]);
      const emitter = { kind, credentialId: issued.id, personId, runId: null };
      await emitView(manager, emitter, appId, viewer);
      return issued.token;
    });
    const caller = await credentials.resolve(token);
    if (!caller) throw new ActionError("NOT_FOUND");
    return { token, caller };
  }

  return {
    /** Who the tokens stand for, those that stand for nobody left out. */
    async holders(tokens: readonly string[]): Promise<Held[]> {
      const callers = await Promise.all(tokens.map((token) => credentials.resolve(token)));
      return callers.flatMap((caller, index) => (caller ? [{ token: tokens[index]!, caller }] : []));
    },

    /**
     * The session of a visitor of a published app: a live one of this app that came along, or a new one without a person.
     * @throws NOT_FOUND for an app that is not published, or is none; RATE_LIMIT_EXCEEDED per address
     */
    async visit(appId: number, held: readonly Held[], address: string): Promise<PageSession> {
      const app = await appOf(appId);
      if (!app?.published) throw new ActionError("NOT_FOUND", "there is no published app at this address");
      const own = held.find(({ caller }) => caller.kind === "live" && caller.appId === appId);
      const viewer = addressBlock(address);
      if (own) {
        await emitView(db, own.caller, appId, viewer);
        return { ...own, app, made: null };
      }
      boundMinting(viewer);
      const expiresAt = new Date(Date.now() + VISIT_MS);
      return { ...(await mint("live", { appId, personId: null, viewer }, expiresAt)), app, made: { expiresAt } };
    },

    /**
     * The viewer session of an editor of the app whose own session came along; it ends with that editor's rights.
     * @throws UNAUTHORIZED without any session, FORBIDDEN where none is an editor's of the app, APP_NOT_FOUND (to admins alone)
     */
    async preview(appId: number, held: readonly Held[]): Promise<PageSession> {
      if (held.length === 0) throw new ActionError("UNAUTHORIZED");
      const person = held.find(({ caller }) => mayEnter(caller, "previewApp", appId));
      if (!person) throw new ActionError("FORBIDDEN");
      const app = await appOf(appId);
      if (!app) throw new ActionError("APP_NOT_FOUND");
      const { personId } = person.caller;
      const own = held.find(
        ({ caller }) => caller.kind === "viewer" && caller.appId === appId && caller.personId === personId,
      );
      const viewer = `person ${personId}`;
      if (own) {
        await emitView(db, own.caller, appId, viewer);
        return { ...own, app, made: null };
      }
      const expiresAt = new Date(Date.now() + PREVIEW_MS);
      return { ...(await mint("viewer", { appId, personId, viewer }, expiresAt)), app, made: { expiresAt } };
    },
  };
}
