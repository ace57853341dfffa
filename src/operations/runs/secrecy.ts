/**
 * Keeps secrets in: what one run may see of the settings, and what of its words may leave (contract, section 6). What counts is what
 * the run could have read: all values that stood at any time between its start and the moment of asking, by the database's numbers.
 */
import { LRUCache } from "lru-cache";
import type { Environment } from "../../data/action-types.js";
import type { Scan, ScannedText, SecretScans } from "../../engine/secret-scan.js";
import { ActionError } from "../../errors.js";
import { secretsFault, secretsOfSetting } from "../../rules/secrets.js";
import { checkUnderscoreSize, serverActionView } from "../../rules/setting-tiers.js";
import type { ScriptError } from "../records/execution-logs.js";
import type { SecretValues } from "../settings/secret-values.js";
import type { Settings } from "../settings/settings.js";

/** What a scan makes of a run's outcome: `error` where it must not leave as it is. */
export type Judgement = { error: Pick<ScriptError, "name" | "message"> } | null;

export interface RunSecrecy {
  /** Whether the app has secrets, as far as is known. */
  readonly needed: boolean;
  /** JSON text of `context.settings` (specification, Execution context). @throws EXECUTION_FAILED over 100 KB */
  contextSettings(environment: Environment): string;
  /** Says that the run reaches no network: it can read nothing while it runs, and nothing is asked for its sake. */
  cutOff(): void;
  /** JSON text of the payload as a log entry may repeat it. */
  maskPayload(payload: string): Promise<string>;
  /** Lines as they may be kept. */
  mask(lines: readonly ScannedText[]): Promise<string[]>;
  /** The key whose value the address holds, or null. */
  findInUrl(url: string): Promise<string | null>;
  /** Judges what leaves with the run's end by the secrets that are known now. */
  exit(): RunExit;
  /** Takes in what was set meanwhile. @returns whether that exit judged by less @throws EXECUTION_FAILED where it cannot be known any more */
  outdated(exit: RunExit): Promise<boolean>;
}

/** What it lets pass may leave while `version` is the number of the last change of the app's secrets; null: at any time, for the run could not read them. */
export interface RunExit {
  readonly version: number | null;
  /** The payload as it may be kept. */
  maskPayload(payload: string): Promise<string>;
  judgeResult(json: string): Promise<Judgement>;
  judgeError(texts: readonly ScannedText[]): Promise<Judgement>;
}

export const CHANGED_TOO_OFTEN =
  "private settings changed too often while the action ran to know what it could have read";

function leaked(where: string, key: string): Judgement {
  const message = `the ${where} holds the value of the setting ${key}, which must not leave the service`;
  return { error: { name: "SecretLeakError", message } };
}

/** What a run starts with, the same for all that start between two changes of the app's settings. */
interface Prepared {
  version: number;
  entries: SecretValues["entries"];
  scan: Scan;
  needed: boolean;
  /** JSON text of the underscore settings. */
  context: string;
}

/** Of what runs start with; in characters of settings. */
const PREPARED_MAX = 16 * 1024 * 1024;
const ENTRY_OVERHEAD = 256;

export function createSecrecy({ settings, scans }: { settings: Settings; scans: SecretScans }) {
  const prepared = new LRUCache<number, Prepared>({
    maxSize: PREPARED_MAX,
    sizeCalculation: ({ context }) => context.length + ENTRY_OVERHEAD,
  });

  function scanOf(appId: number, key: string, entries: SecretValues["entries"]): Pick<Prepared, "scan" | "needed"> {
    const secrets = entries.flatMap(([name, value]) => secretsOfSetting(name, value));
    const fault = secretsFault(secrets);
    if (fault !== null) throw new ActionError("EXECUTION_FAILED", fault);
    return { scan: scans.of(String(appId), `${appId}:${key}`, secrets), needed: secrets.length > 0 };
  }

  async function prepare(appId: number, version: number): Promise<Prepared> {
    const known = prepared.get(appId);
    if (known?.version === version) return known;
    const { entries, underscore, ...read } = await settings.secretValues.read(appId);
    const sealed = new Set(await settings.secretValues.sealedKeys(appId));
    const context = JSON.stringify(serverActionView(underscore.filter(([key]) => !sealed.has(key))));
    const made = { version: read.version, entries, context, ...scanOf(appId, String(read.version), entries) };
    prepared.set(appId, made);
    return made;
  }

  return {
    /**
     * What a run that starts now may see, and what may leave it. @throws EXECUTION_FAILED when its secrets are too many
     * @param known the number of the last change of its app's secrets, where that was read as the run was accepted to start at once
     */
    async begin(appId: number, known?: number): Promise<RunSecrecy> {
      const start = await prepare(appId, known ?? (await settings.secretValues.version(appId)));
      let { version, scan, needed } = start;
      let asking: Promise<void> | null = null;
      let canRead = true;

      /** Takes in what was set and replaced since the start. */
      async function look(): Promise<void> {
        if ((await settings.secretValues.version(appId)) === version) return;
        const values = await settings.secretValues.read(appId, start.version);
        if (values.forgotten > start.version) throw new ActionError("EXECUTION_FAILED", CHANGED_TOO_OFTEN);
        const entries = [...start.entries, ...values.entries];
        ({ scan, needed } = scanOf(appId, `${start.version}-${values.version}`, entries));
        version = values.version;
      }

      /** By a look that began after this was called: one that is under way may have missed the last change. */
      async function current(): Promise<Scan> {
        if (!canRead) return scan;
        while (asking) await asking.catch(() => undefined);
        asking = look();
        try {
          await asking;
        } finally {
          asking = null;
        }
        return scan;
      }

      let masked: { by: Scan; text: Promise<string> } | null = null;
      /** Once for the same secrets. */
      function maskPayload(by: Scan, payload: string): Promise<string> {
        if (masked?.by !== by) masked = { by, text: by.maskJson(payload) };
        return masked.text;
      }

      return {
        get needed() {
          return needed;
        },
        contextSettings(environment) {
          if (environment !== "server") return "{}";
          checkUnderscoreSize(start.context);
          return start.context;
        },
        cutOff() {
          canRead = false;
        },
        maskPayload: async (payload) => (needed ? maskPayload(scan, payload) : payload),
        mask: async (lines) => (await current()).mask(lines),
        findInUrl: async (url) => (await current()).findInUrl(url),
        exit() {
          // Its own from here on: a request that is judged beside it may take in more.
          const by = scan;
          const isNeeded = needed;
          return {
            version: canRead ? version : null,
            maskPayload: async (payload) => (isNeeded ? maskPayload(by, payload) : payload),
            async judgeResult(json) {
              const name = await by.findInJson(json);
              return name === null ? null : leaked("result", name);
            },
            async judgeError(texts) {
              const name = await by.find(texts);
              return name === null ? null : leaked("error", name);
            },
          };
        },
        async outdated(exit) {
          if (exit.version === null) return false;
          await current();
          return version !== exit.version;
        },
      };
    },
  };
}

export type Secrecy = ReturnType<typeof createSecrecy>;
