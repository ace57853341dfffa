/** Provides the settings that a run may read, and searches everything that leaves the run for secrets. */
import { LRUCache } from "lru-cache";
import type { Environment } from "../../data/action-types.js";
import type { ScannedText, SecretScanner, SecretScannerCache } from "../../engine/secret-scan.js";
import { ActionError } from "../../errors.js";
import { findSecretLimitFault, findSecretsInSettingValue } from "../../rules/secrets.js";
import { checkPrivateSettingsSize, selectServerActionSettings } from "../../rules/setting-tiers.js";
import type { RunOutcome } from "../records/execution-logs.js";
import type { SecretValues } from "../settings/secret-values.js";
import type { Settings } from "../settings/settings.js";
import { createFailedOutcome, EMPTY_PAYLOAD } from "./outcomes.js";

/** A run fails if the secrets of its app change more often, because each change can cause another search of its outcome. */
const SECRET_CHANGES_MAX = 1_000;

function createLeakFailure(where: string, key: string): RunOutcome {
  const message = `the ${where} holds the value of the setting ${key}, which must not leave the service`;
  return createFailedOutcome("SecretLeakError", message);
}

/** Returns the key of a setting whose value the outcome contains; null if it contains no secret. */
async function findInOutcome(scanner: SecretScanner, outcome: RunOutcome, isCut: boolean): Promise<string | null> {
  if (outcome.ok) return outcome.data === undefined ? null : scanner.findInJson(outcome.data);
  const { name, message, stack } = outcome.error;
  return scanner.find([name, message, stack].map((text) => ({ text, cut: isCut })));
}

/** Secrets of an app at the start of a run. Runs share this object until the app's secrets change. */
interface StartSecrets {
  version: number;
  entries: SecretValues["entries"];
  scanner: SecretScanner;
  hasSecrets: boolean;
  /** JSON text of the settings that a server action gets in `context.settings`. */
  contextSettings: string;
}

const CACHED_CHARACTERS_MAX = 16 * 1024 * 1024;
const ENTRY_OVERHEAD_CHARACTERS = 256;

export class RunSecrets {
  private current: Pick<StartSecrets, "version" | "scanner" | "hasSecrets">;
  private lastRead: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly store: SecretStore,
    private readonly appId: number,
    private readonly startSecrets: StartSecrets,
  ) {
    this.current = startSecrets;
  }

  get hasSecrets(): boolean {
    return this.current.hasSecrets;
  }

  /**
   * Returns `context.settings` as JSON text; `{}` if the action is not a server action.
   * @throws EXECUTION_FAILED if the settings are larger than NON_PUBLIC_SETTINGS_PER_APP_MAX_BYTES
   */
  getContextSettings(environment: Environment): string {
    if (environment !== "server") return "{}";
    checkPrivateSettingsSize(this.startSecrets.contextSettings);
    return this.startSecrets.contextSettings;
  }

  /** @throws EXECUTION_FAILED if there are too many secrets, or if they changed too often */
  private async readNewSecrets(): Promise<SecretScanner> {
    const { store, appId, startSecrets } = this;
    if ((await store.secretValues.readVersion(appId)) === this.current.version) return this.current.scanner;
    const { version, deletedUpToVersion, entries } = await store.secretValues.read(appId, startSecrets.version);
    if (deletedUpToVersion > startSecrets.version || version - startSecrets.version > SECRET_CHANGES_MAX)
      throw new ActionError(
        "EXECUTION_FAILED",
        "secret settings changed too often, or were too large, during the run, so not all values that it could read can be masked",
      );
    const allEntries = [...startSecrets.entries, ...entries];
    this.current = { version, ...store.getScanner(appId, `${startSecrets.version}-${version}`, allEntries) };
    return this.current.scanner;
  }

  /** Reads new secrets, and returns a scanner for all. A read in progress may miss a change, so another read follows it. */
  private getCurrentScanner(): Promise<SecretScanner> {
    // Ignores an error of the last read, because its caller receives it.
    const read = this.lastRead.catch(() => undefined).then(() => this.readNewSecrets());
    this.lastRead = read;
    return read;
  }

  async mask(lines: readonly ScannedText[]): Promise<string[]> {
    return (await this.getCurrentScanner()).mask(lines);
  }

  /** Returns the key of the setting whose value the URL contains; null if the URL contains no secret. */
  async findInUrl(url: string): Promise<string | null> {
    return (await this.getCurrentScanner()).findInUrl(url);
  }

  /** Returns the masked payload for the run's log entry; null if the entry can refer to the payload in the run's row instead. */
  async maskPayload(payload: string, { scanner, hasSecrets } = this.current): Promise<string | null> {
    const text = hasSecrets ? await scanner.maskJson(payload) : payload;
    return text === payload && payload !== EMPTY_PAYLOAD ? null : text;
  }

  /**
   * Searches the outcome, and masks the payload like `maskPayload`. Returns both, and the version of the secrets that the search covers. If
   * the outcome contains a secret, a failure replaces it. @param isCut true if the end of the error's text is missing
   */
  async scanOutcome(outcome: RunOutcome, isCut: boolean, payload: string) {
    // A late request of the run can replace `this.current` during the search.
    const { current } = this;
    const key = await findInOutcome(current.scanner, outcome, isCut);
    const scannedOutcome = key === null ? outcome : createLeakFailure(outcome.ok ? "result" : "error", key);
    return { outcome: scannedOutcome, payload: await this.maskPayload(payload, current), version: current.version };
  }

  /** Reads new secrets. Returns true if their version is not `version`. @throws the errors of `readNewSecrets` */
  async isOutdated(version: number): Promise<boolean> {
    await this.getCurrentScanner();
    return this.current.version !== version;
  }
}

/** Reads and caches the secrets of apps. */
export class SecretStore {
  private readonly cached = new LRUCache<number, StartSecrets>({
    maxSize: CACHED_CHARACTERS_MAX,
    sizeCalculation: ({ contextSettings }) => contextSettings.length + ENTRY_OVERHEAD_CHARACTERS,
  });

  constructor(
    readonly secretValues: Settings["secretValues"],
    private readonly scannerCache: SecretScannerCache,
  ) {}

  getScanner(
    appId: number,
    key: string,
    entries: SecretValues["entries"],
  ): Pick<StartSecrets, "scanner" | "hasSecrets"> {
    const secrets = entries.flatMap(([name, value]) => findSecretsInSettingValue(name, value));
    const fault = findSecretLimitFault(secrets);
    if (fault !== null) throw new ActionError("EXECUTION_FAILED", fault);
    return {
      scanner: this.scannerCache.getScanner(String(appId), `${appId}:${key}`, secrets),
      hasSecrets: secrets.length > 0,
    };
  }

  private async readStartSecrets(appId: number, version: number): Promise<StartSecrets> {
    const cached = this.cached.get(appId);
    if (cached?.version === version) return cached;
    const { secretValues } = this;
    const { entries, privateAndProtected, ...read } = await secretValues.read(appId);
    const sealedKeys = await secretValues.readSealedKeys(appId);
    const contextSettings = JSON.stringify(selectServerActionSettings(privateAndProtected, sealedKeys));
    const secrets = {
      version: read.version,
      entries,
      contextSettings,
      ...this.getScanner(appId, String(read.version), entries),
    };
    this.cached.set(appId, secrets);
    return secrets;
  }

  /** @param knownVersion version of the app's secrets, if it was read before @throws EXECUTION_FAILED if the app has too many secrets */
  async beginRun(appId: number, knownVersion?: number | null): Promise<RunSecrets> {
    const version = knownVersion ?? (await this.secretValues.readVersion(appId));
    return new RunSecrets(this, appId, await this.readStartSecrets(appId, version));
  }

  /** Returns true also if the app's secrets cannot be read, or if it has too many to search for. */
  hasSecrets(appId: number): Promise<boolean> {
    return this.beginRun(appId).then(
      (secrets) => secrets.hasSecrets,
      () => true,
    );
  }

  /** Like `RunSecrets.maskPayload`, but returns `{}` if the app's secrets cannot be read, or if it has too many to search for. */
  async maskPayloadOfRun({ appId, payload }: { appId: number; payload: string }): Promise<string | null> {
    const masked = this.beginRun(appId).then((secrets) => secrets.maskPayload(payload));
    return masked.catch(() => EMPTY_PAYLOAD);
  }
}
