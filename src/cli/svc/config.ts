/** Finds the server, the app and the token for a command: in environment variables, svc.json, or the saved sign-in. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describeRejectedValue } from "../../config/values.js";
import { describeValue } from "../../rules/describe-value.js";
import { createUsageError } from "./failure.js";
import { readTextFile } from "./text-file.js";

export type ProcessEnvironment = Readonly<Record<string, string | undefined>>;

export const PROJECT_FILE = "svc.json";

export interface ServerAndApp {
  /** Address of the server, without a trailing slash. */
  url: string;
  app: number;
  /** Folder that contains svc.json; the current folder if there is no svc.json. */
  root: string;
}

function readJson(path: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(readTextFile(path, path));
  } catch (error) {
    throw createUsageError(`${path} cannot be read: ${(error as Error).message}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw createUsageError(`${path} must contain a JSON object`);
  }
  return value as Record<string, unknown>;
}

export function findProjectRoot(startFolder: string): string | null {
  for (let folder = resolve(startFolder); ; folder = dirname(folder)) {
    if (existsSync(join(folder, PROJECT_FILE))) return folder;
    if (dirname(folder) === folder) return null;
  }
}

export function parseServiceUrl(text: unknown, inputName: string): string {
  const url = typeof text === "string" ? URL.parse(text) : null;
  const isPlain = url && url.username === "" && url.password === "" && !/[?#]/.test(url.href);
  if (!isPlain || !/^https?:$/.test(url.protocol)) {
    const receivedText =
      typeof text === "string" ? describeRejectedValue(text, { isSecret: text.includes("#") }) : describeValue(text);
    throw createUsageError(
      `${inputName} must be an http or https address without a password, query or fragment (got ${receivedText})`,
    );
  }
  let address = url.href;
  while (address.endsWith("/")) address = address.slice(0, -1);
  return address;
}

export function parseAppId(value: unknown, inputName: string): number {
  const app = typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value;
  if (typeof app === "number" && Number.isSafeInteger(app) && app > 0) return app;
  throw createUsageError(`${inputName} must be the ID of an app, a positive integer (got ${describeValue(value)})`);
}

/**
 * Finds the server and the app for a command: in SVC_URL and SVC_APP, otherwise in svc.json.
 * @throws CliError if svc.json cannot be read, or if the server or the app is missing or invalid
 */
export function readServerAndApp(cwd: string, env: ProcessEnvironment): ServerAndApp {
  const root = findProjectRoot(cwd);
  const file = root === null ? {} : readJson(join(root, PROJECT_FILE));
  const [url, app] = [env["SVC_URL"] ?? file["url"], env["SVC_APP"] ?? file["app"]];
  if (url === undefined)
    throw createUsageError('no server is set; run svc init in a new folder, or set SVC_URL or "url" in svc.json');
  if (app === undefined)
    throw createUsageError('no app is set; run svc init in a new folder, or set SVC_APP or "app" in svc.json');
  return {
    url: parseServiceUrl(url, env["SVC_URL"] === undefined ? "url of svc.json" : "SVC_URL"),
    app: parseAppId(app, env["SVC_APP"] === undefined ? "app of svc.json" : "SVC_APP"),
    root: root ?? resolve(cwd),
  };
}

/** Saved sign-in: a token, and for an OAuth token the data to renew it. */
export interface SavedToken {
  token: string;
  refreshToken?: string;
  clientId?: string;
  /** Unix time at which the token expires, in milliseconds. */
  expiresAt?: number;
}

const LOCK_POLL_MS = 50;
/**
 * Age from which every lock counts as stale, even if its file has no process ID, or another process now has this ID. It exceeds the
 * time of one renewal, which is a single request.
 */
const LOCK_MAX_AGE_MS = 140_000;

/** Creates a file with the ID of this process. Returns false if the file exists. */
function tryCreateLock(path: string): boolean {
  try {
    writeFileSync(path, String(process.pid), { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** True if the lock is older than LOCK_MAX_AGE_MS, or the process that created it no longer runs, so that nothing removes the lock. */
function isStaleLock(lockPath: string): boolean {
  try {
    if (Date.now() - statSync(lockPath).mtimeMs > LOCK_MAX_AGE_MS) return true;
    process.kill(Number(readFileSync(lockPath, "utf8")), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
}

/** Saved sign-ins of the person who runs `svc`, by server and app. Only this person can read the file. */
export class TokenStore {
  readonly #path: string;

  constructor(env: ProcessEnvironment) {
    const configFolder =
      env["SVC_CONFIG_DIR"] ?? join(env["XDG_CONFIG_HOME"] ?? env["APPDATA"] ?? join(homedir(), ".config"), "svc");
    this.#path = join(configFolder, "credentials.json");
  }

  #readTokens(): Record<string, SavedToken> {
    return existsSync(this.#path) ? (readJson(this.#path) as Record<string, SavedToken>) : {};
  }

  #writeTokens(tokens: Record<string, SavedToken>): void {
    mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
    // Writes a temporary file and renames it, so that another command never reads a partly written file.
    const temporaryPath = `${this.#path}.${process.pid}.tmp`;
    writeFileSync(temporaryPath, `${JSON.stringify(tokens, null, 2)}\n`, { mode: 0o600 });
    renameSync(temporaryPath, this.#path);
  }

  /** Calls `work` while no other command on this machine, and no other call in this process, is in `lockForRenewal`. */
  async lockForRenewal<T>(work: () => Promise<T>): Promise<T> {
    const lockPath = `${this.#path}.lock`;
    while (!tryCreateLock(lockPath)) {
      if (isStaleLock(lockPath)) rmSync(lockPath, { force: true });
      else await delay(LOCK_POLL_MS);
    }
    try {
      return await work();
    } finally {
      rmSync(lockPath, { force: true });
    }
  }

  get({ url, app }: Pick<ServerAndApp, "url" | "app">): SavedToken | null {
    return this.#readTokens()[`${url} ${app}`] ?? null;
  }

  set({ url, app }: Pick<ServerAndApp, "url" | "app">, token: SavedToken): void {
    this.#writeTokens({ ...this.#readTokens(), [`${url} ${app}`]: token });
  }

  remove({ url, app }: Pick<ServerAndApp, "url" | "app">): void {
    const { [`${url} ${app}`]: _, ...rest } = this.#readTokens();
    this.#writeTokens(rest);
  }
}
