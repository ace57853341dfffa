/**
 * Implements `Svc.init`: the session of a visitor of a page on another origin. Starts the session, stores it in the page's storage, renews
 * it, and replaces it when the service no longer accepts it.
 */
import type { Connection } from "./connection.js";
import { failure } from "./failure.js";
import type { Client } from "./public-types.js";
import { scope } from "./scope.js";

/** Session in the page's storage. Times are Unix time in milliseconds by the page's clock. */
interface Stored {
  token: string;
  expiresAt: number;
  renewAt: number;
}

interface Answer {
  token: string;
  expiresAt: string;
}

/** Minimum time between two renewals, even if the page's clock is wrong. */
const RENEW_MIN_MS = 60_000;
/** Maximum delay of a browser's timer. */
const TIMER_MAX_MS = 2 ** 31 - 1;
/** Error statuses after which another attempt is useless. */
const FINAL: readonly unknown[] = ["FORBIDDEN", "APP_NOT_PUBLISHED"];

/** Reads the stored session. If the browser blocks storage (private windows), the session lasts as long as the page. */
function readStored(key: string): Stored | null {
  try {
    const stored = JSON.parse(localStorage.getItem(key) ?? "null") as Stored | null;
    const isWhole = typeof stored?.token === "string" && Number.isFinite(stored.expiresAt + stored.renewAt);
    return isWhole ? stored : null;
  } catch {
    return null;
  }
}

function writeStored(key: string, stored: Stored): void {
  try {
    localStorage.setItem(key, JSON.stringify(stored));
  } catch {
    // Storage is blocked: see readStored.
  }
}

/** Lets one page of the origin work at a time, so that the other pages find the session that it has started. */
async function inTurn<T>(key: string, work: () => Promise<T>): Promise<T> {
  const locks = scope.navigator?.locks;
  return locks ? await locks.request(key, work) : await work();
}

/**
 * @param changed called when the connection has the token of another session
 * @param prolonged called when the current token has a later expiry
 */
export function createVisitor(connection: Connection, { changed, prolonged }: { changed(): void; prolonged(): void }) {
  let key: string | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let refreshing: Promise<boolean> | null = null;

  function take(stored: Stored): boolean {
    const isOther = stored.token !== connection.token();
    connection.configure({ token: stored.token });
    clearTimeout(timer);
    const delay = Math.max(RENEW_MIN_MS, stored.renewAt - Date.now());
    timer = setTimeout(() => void renew(), Math.min(delay, TIMER_MAX_MS));
    return isOther;
  }

  async function ask(of: string): Promise<boolean> {
    const before = connection.token();
    const known = readStored(of);
    if (known && known.token !== before && known.expiresAt > Date.now()) return take(known);
    const path = `/v1/apps/${connection.appId()}/visitors`;
    const { token, expiresAt } = (await connection.request("POST", path, undefined, {
      once: true,
    })) as unknown as Answer;
    // The page was configured with another app meanwhile.
    if (key !== of) return false;
    const end = Date.parse(expiresAt);
    const stored = { token, expiresAt: end, renewAt: Date.now() + (end - Date.now()) / 2 };
    writeStored(of, stored);
    return take(stored);
  }

  /** Requests the session again. Resolves to true if the connection has another token now. */
  function refresh(): Promise<boolean> {
    const of = key;
    if (of === null) return Promise.resolve(false);
    refreshing ??= inTurn(of, () => ask(of)).finally(() => {
      refreshing = null;
    });
    return refreshing;
  }

  async function renew(): Promise<void> {
    try {
      if (await refresh()) changed();
      else prolonged();
    } catch (error) {
      if (FINAL.includes((error as { status?: string }).status)) return;
      timer = setTimeout(() => void renew(), RENEW_MIN_MS);
    }
  }

  function stop(): void {
    key = null;
    clearTimeout(timer);
  }

  // A 401 can also mean a wrong password, so this asks the service whether the session is still valid.
  connection.onUnauthorized(async () => {
    const isOther = key !== null && (await refresh().catch(() => false));
    if (isOther) changed();
    return isOther;
  });

  return {
    stop,
    /** @throws SvcError FORBIDDEN if the page's origin is not listed, APP_NOT_PUBLISHED, RATE_LIMIT_EXCEEDED, NETWORK_ERROR */
    async init({ app, url }: Parameters<Client["init"]>[0]): Promise<void> {
      if (!Number.isSafeInteger(app) || app < 1) throw failure("REQUEST_INVALID", "app must be the id of an app");
      stop();
      connection.configure({ appId: app, token: "", ...(url !== undefined && { apiUrl: url }) });
      key = `svc.visitor ${connection.address("/").href} ${app}`;
      const stored = readStored(key);
      if (stored) take(stored);
      if (!stored || stored.expiresAt < Date.now() + RENEW_MIN_MS) await refresh();
      changed();
    },
  };
}
