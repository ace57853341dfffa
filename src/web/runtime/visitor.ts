/**
 * Implements `Svc.init`: the session of a visitor on a page whose origin is not the service's. Starts the session, stores it
 * in the browser's storage, renews it, and starts a new session when the service no longer accepts this one.
 */
import type { Connection } from "./connection.js";
import { createSvcError } from "./failure.js";
import type { Client } from "./public-types.js";
import { globalScope } from "./scope.js";

/** Session as the browser's storage contains it. Times are Unix milliseconds, measured by the browser's clock. */
interface StoredSession {
  token: string;
  expiresAt: number;
  renewAt: number;
}

interface VisitorSessionResponse {
  token: string;
  expiresAt: string;
}

/** Minimum time between two renewals, even if the page's clock is wrong. */
const MIN_RENEWAL_INTERVAL_MS = 60_000;
/** Maximum delay in milliseconds that browsers support for setTimeout. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Reads the stored session. If the browser blocks storage (blocked cookies, sandboxed frames), the session lasts as long as the page. */
function readStoredSession(key: string): StoredSession | null {
  try {
    const session = JSON.parse(localStorage.getItem(key) ?? "null") as StoredSession | null;
    const isComplete = typeof session?.token === "string" && Number.isFinite(session.expiresAt + session.renewAt);
    return isComplete ? session : null;
  } catch {
    return null;
  }
}

function writeStoredSession(key: string, session: StoredSession): void {
  try {
    localStorage.setItem(key, JSON.stringify(session));
  } catch {
    // Ignores the error. If the browser blocks storage, the session lasts as long as the page.
  }
}

/**
 * Runs `work` in one page of the origin at a time; the other pages wait. Otherwise, each page would start its own session. Without HTTPS,
 * browsers offer no locks, and `work` runs at once.
 */
async function withLock<T>(key: string, work: () => Promise<T>): Promise<T> {
  const locks = globalScope.navigator?.locks;
  return locks ? await locks.request(key, work) : await work();
}

/**
 * Creates the implementation of `Svc.init`.
 * @param onSessionChanged called after `init`, and after the connection's token was replaced by the token of another session
 * @param onSessionExtended called after the service has extended the lifetime of the current token
 */
export function createVisitorSessionManager(
  connection: Connection,
  { onSessionChanged, onSessionExtended }: { onSessionChanged(): void; onSessionExtended(): void },
) {
  let key: string | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** Unfinished requests for a session, by session key. */
  const pendingRefreshes = new Map<string, Promise<boolean>>();

  function applySession(session: StoredSession): boolean {
    const isOtherSession = session.token !== connection.getToken();
    connection.configure({ token: session.token });
    clearTimeout(timer);
    const delay = Math.max(MIN_RENEWAL_INTERVAL_MS, session.renewAt - Date.now());
    timer = setTimeout(() => void renewSession(), Math.min(delay, MAX_TIMER_MS));
    return isOtherSession;
  }

  async function requestSession(sessionKey: string): Promise<boolean> {
    // The page may have called `configure`, or `init` for another app, while this request waited for the lock.
    if (key !== sessionKey) return false;
    const previousToken = connection.getToken();
    const storedSession = readStoredSession(sessionKey);
    if (storedSession && storedSession.token !== previousToken && storedSession.expiresAt > Date.now())
      return applySession(storedSession);
    const path = `/v1/apps/${connection.appId()}/visitors`;
    const { token, expiresAt } = (await connection.request("POST", path, undefined, {
      skipsTokenRenewal: true,
    })) as unknown as VisitorSessionResponse;
    // If the page has called `configure`, or `init` for another app, during the request, this session is no longer needed.
    if (key !== sessionKey) return false;
    const endsAt = Date.parse(expiresAt);
    const session = { token, expiresAt: endsAt, renewAt: Date.now() + (endsAt - Date.now()) / 2 };
    writeStoredSession(sessionKey, session);
    return applySession(session);
  }

  /** Gets a session from the storage or the service. Resolves to true if the connection's token was replaced. */
  function refreshSession(): Promise<boolean> {
    const sessionKey = key;
    if (sessionKey === null) return Promise.resolve(false);
    const activeRefresh = pendingRefreshes.get(sessionKey);
    if (activeRefresh !== undefined) return activeRefresh;
    const refresh = withLock(sessionKey, () => requestSession(sessionKey)).finally(() =>
      pendingRefreshes.delete(sessionKey),
    );
    pendingRefreshes.set(sessionKey, refresh);
    return refresh;
  }

  async function renewSession(): Promise<void> {
    const sessionKey = key;
    try {
      const isOtherSession = await refreshSession();
      if (key !== sessionKey) return;
      if (isOtherSession) onSessionChanged();
      else onSessionExtended();
    } catch (error) {
      if (key !== sessionKey || (error as { status?: string }).status === "FORBIDDEN") return;
      timer = setTimeout(() => void renewSession(), MIN_RENEWAL_INTERVAL_MS);
    }
  }

  function stopRenewal(): void {
    key = null;
    clearTimeout(timer);
  }

  // Status 401 can also mean a wrong password. So the connection repeats the request only if the session has another token now.
  connection.onUnauthorized(async () => {
    const isOtherSession = key !== null && (await refreshSession().catch(() => false));
    if (isOtherSession) onSessionChanged();
    return isOtherSession;
  });

  return {
    stop: stopRenewal,
    /**
     * Starts or continues the session.
     * @throws SvcError REQUEST_INVALID, FORBIDDEN if the app does not list the page's origin, APP_NOT_PUBLISHED, RATE_LIMIT_EXCEEDED,
     *   OVERLOADED, NETWORK_ERROR
     */
    async init({ app, url }: Parameters<Client["init"]>[0]): Promise<void> {
      if (!Number.isSafeInteger(app) || app < 1)
        throw createSvcError(
          "REQUEST_INVALID",
          `app must be the ID of an app, a positive integer (got ${typeof app === "number" ? app : (JSON.stringify(app) ?? typeof app)})`,
        );
      stopRenewal();
      connection.configure({ appId: app, token: "", ...(url !== undefined && { apiUrl: url }) });
      const sessionKey = `svc.visitor ${connection.resolveUrl("/").href} ${app}`;
      key = sessionKey;
      const session = readStoredSession(sessionKey);
      if (session) applySession(session);
      if (!session || session.expiresAt < Date.now() + MIN_RENEWAL_INTERVAL_MS) await refreshSession();
      if (key === sessionKey) onSessionChanged();
    },
  };
}
