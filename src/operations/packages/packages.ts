/**
 * Resolves the dependencies of actions to scripts: scripts that the service provides, or scripts that it downloads and stores before an
 * action is saved. Runs download no packages. They load a script from its URL only if the URL did not respond to the service.
 */
import type { Logger } from "pino";
import { valid } from "semver";
import type { Config } from "../../config.js";
import type { StoredAsset } from "../../data/action-types.js";
import type { Db } from "../../data/database.js";
import { BundlerBusyError, PackageError, SandboxUnavailableError } from "../../engine/bundler/fault.js";
import type { RepositoryReadJob } from "../../engine/bundler/project/git-project.js";
import type { BuiltSourceScript, SourceBuildJob } from "../../engine/bundler/source-script.js";
import { Bundler } from "../../engine/bundler.js";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { ActionError } from "../../errors.js";
import { isObject } from "../../rules/describe-value.js";
import { isAllowedLicence } from "../../rules/licences.js";
import { findPackageAlternative } from "../../rules/package-alternatives.js";
import {
  createDependencyError,
  type Dependency,
  getImportName,
  isStoredScript,
  type PackageCatalogue,
  parseDependency,
  type StoredScriptAsset,
} from "../../rules/packages.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import { ScriptLoader, URL_RECHECK_TIMEOUT_MS } from "./addresses.js";
import {
  type ContainedPackage,
  computeSha256Hex,
  listStoredScriptHashes,
  parseIntegritySha256,
  type ScriptFacts,
  StoredScripts,
  toStoredScriptAsset,
} from "./kept-scripts.js";
import { createGlobalExpression, findStoredAsset, requireDifferentGlobals } from "./package-assets.js";
import { createPackageConnections } from "./package-connections.js";
import type { PackageProbe } from "./package-probe.js";
import { preparePackageDownload } from "./package-tree.js";
import { PackageRegistry, REGISTRY_DOWN_RETRY_SECONDS } from "./registry.js";
import { ScriptQuota, type ScriptQuotaRequest } from "./script-quota.js";

/** Maximum number of npm packages that this process downloads and bundles at the same time: at most one for each app. */
const CONCURRENT_PACKAGES_MAX = 4;
/** Maximum number of script URLs that this process requests at the same time: at most one for each app. */
const CONCURRENT_SCRIPT_URLS_MAX = 16;
const DOWNLOAD_TIMEOUT_MS = 60_000;
/** Time limit for all dependencies of one save. Packages that are stored by then are reused at the next save. */
const SAVE_TIMEOUT_MS = 120_000;
const MISSING_SCRIPTS_TIMEOUT_MS = 10_000;
const SWEEP_INTERVAL_MS = 600_000;
const DEPENDENCIES_MAX = 100;

export interface PackagesOptions {
  db: Db;
  catalogue: PackageCatalogue;
  receivedDataLimiter: ReceivedDataLimiter;
  npm: Config["npm"];
  bundlerSandbox: boolean;
  probe: PackageProbe;
  allowPrivateNetwork: boolean;
  egressAddress: string | null;
  log: Logger;
}

/**
 * Dependencies that were resolved before a save. `lateAssets` are scripts that were downloaded only now, because their URLs did not respond
 * at an earlier save. `firstError` is the first error; null if there was none.
 */
export interface ResolvedDependencies {
  assets: ReadonlyMap<string, StoredAsset>;
  lateAssets: readonly StoredAsset[];
  firstError: unknown;
}

/** Dependencies of an exported action: scripts that this service has stored, and the version of each npm package. */
export interface ExportedAssets {
  storedAssets: readonly StoredScriptAsset[];
  versions: ReadonlyMap<string, string>;
}

export const NO_EXPORTED_ASSETS: ExportedAssets = { storedAssets: [], versions: new Map() };

export const NO_RESOLVED_DEPENDENCIES: ResolvedDependencies = { assets: new Map(), lateAssets: [], firstError: null };

/**
 * Converts an error of the bundler to an error for the action's author, with `retryAfter` if the package did not cause it. Returns other
 * errors unchanged.
 */
export function toBundlingError(dependency: string, error: unknown): unknown {
  if (error instanceof PackageError) {
    const alternative = findPackageAlternative(dependency);
    const reason = error.message + (alternative && `; use ${alternative} instead`);
    return createDependencyError(dependency, `cannot be used: ${reason}`);
  }
  if (error instanceof BundlerBusyError || error instanceof SandboxUnavailableError)
    return createDependencyError(dependency, `cannot be bundled now: ${error.message}`, REGISTRY_DOWN_RETRY_SECONDS);
  return error;
}

const createChoiceKey = ({ name, subpath, range }: Dependency & { kind: "npm" }) => `${name}${subpath}@${range}`;

export class DependencyResolver {
  private readonly connections = createPackageConnections(this.options);
  readonly scripts = new StoredScripts(this.options.db);
  private readonly bundler = new Bundler({ log: this.options.log, sandbox: this.options.bundlerSandbox });
  private readonly registry =
    this.options.npm && new PackageRegistry({ ...this.options.npm, connections: this.connections.npm });
  private readonly slots = {
    npm: new FairSemaphore(CONCURRENT_PACKAGES_MAX, 1),
    address: new FairSemaphore(CONCURRENT_SCRIPT_URLS_MAX, 1),
  };
  readonly quota = new ScriptQuota(this.scripts);
  private readonly addresses = new ScriptLoader({
    connections: this.connections.scripts,
    scripts: this.scripts,
    quota: this.quota,
    receivedDataLimiter: this.options.receivedDataLimiter,
  });

  constructor(private readonly options: PackagesOptions) {
    const { bundlerSandbox, log } = options;
    if (!bundlerSandbox)
      log.warn(
        "NPM_SANDBOX=off: without user namespaces, packages and sources are bundled in a process with network access",
      );
  }

  private checkLicences(dependency: string, parts: readonly ContainedPackage[]): void {
    const allowed = this.options.npm?.licences;
    const refusedPackage = allowed && parts.find(({ licence }) => !isAllowedLicence(licence, allowed));
    if (!refusedPackage) return;
    const { name, version, licence } = refusedPackage;
    const licenceText = licence === null ? "states no licence" : `has the licence ${licence}`;
    throw createDependencyError(
      dependency,
      `cannot be used: ${name}@${version} ${licenceText}, and this service allows ${allowed.join(", ")}`,
    );
  }

  private async downloadAndStoreScript(
    author: ScriptQuotaRequest,
    dependency: string,
    npm: Dependency & { kind: "npm" },
  ): Promise<ScriptFacts> {
    const { receivedDataLimiter, probe } = this.options;
    const { name, range, subpath } = npm;
    const registryRequest = { dependency, signal: AbortSignal.timeout(DOWNLOAD_TIMEOUT_MS) };
    const { choice, downloadArchives } = await preparePackageDownload(this.registry!, registryRequest, name, range);
    const exactSpec = createChoiceKey({ ...npm, range: choice.version });
    const specs = [createChoiceKey(npm), exactSpec];
    const chosenScript = await this.scripts.findChosenScript(this.registry!.registry, exactSpec);
    if (chosenScript) {
      await this.scripts.recordChoice(this.registry!.registry, specs, chosenScript);
      return chosenScript;
    }
    const { source, global, names, parts, declarations } = await this.bundler
      .bundle(await downloadArchives(), subpath)
      .catch((error: unknown) => {
        throw toBundlingError(dependency, error);
      });
    this.checkLicences(dependency, parts);
    const text = Buffer.from(source);
    const loadFault = await probe({ name: dependency, sha256: computeSha256Hex(text), source }, registryRequest.signal);
    if (loadFault !== null) throw toBundlingError(dependency, new PackageError(loadFault));
    const types = declarations && Buffer.from(JSON.stringify(declarations));
    const bytes = text.length + (types?.length ?? 0);
    await this.quota.countScript(author, dependency, computeSha256Hex(text), bytes);
    receivedDataLimiter.countRows(author.caller, author.appId, bytes);
    const { version } = choice;
    const licence = parts[0]!.licence;
    const script = await this.scripts.store(
      text,
      { package: name + subpath, version, licence, global, names, parts },
      types,
    );
    await this.scripts.recordChoice(this.registry!.registry, specs, script);
    return script;
  }

  private async resolveNpmScript(author: ScriptQuotaRequest, dependency: string, npm: Dependency & { kind: "npm" }) {
    if (!this.registry)
      throw createDependencyError(
        dependency,
        "is not in the catalogue of this service, and npm packages are switched off in this service; use a package of the catalogue or the https URL of a script",
      );
    const chosenScript = await this.scripts.findChosenScript(this.registry.registry, createChoiceKey(npm));
    const script = chosenScript?.fresh
      ? chosenScript
      : await this.downloadAndStoreScript(author, dependency, npm).catch((error: unknown) => {
          if (chosenScript && error instanceof ActionError && error.details.retryAfter === REGISTRY_DOWN_RETRY_SECONDS)
            return chosenScript;
          throw error;
        });
    // The operator may have changed the allowed licences since the script was stored.
    this.checkLicences(dependency, script.parts);
    return toStoredScriptAsset(dependency, script);
  }

  private async resolveAsset(
    author: ScriptQuotaRequest,
    dependency: string,
    known: StoredAsset | undefined,
    version: string | undefined,
  ): Promise<StoredAsset> {
    const parsed = parseDependency(dependency, this.options.catalogue);
    if (parsed.kind === "served") return parsed.asset;
    if (known && isStoredScript(known))
      return parsed.kind === "address" ? this.addresses.recheck(author, dependency, parsed.url, known) : known;
    const releaseSlot = await this.slots[parsed.kind].enter(author.appId);
    try {
      const exactDependency = parsed.kind === "npm" && version !== undefined ? { ...parsed, range: version } : parsed;
      return exactDependency.kind === "npm"
        ? await this.resolveNpmScript(author, dependency, exactDependency)
        : await this.addresses.storeScript(author, dependency, exactDependency.url);
    } finally {
      releaseSlot();
    }
  }

  /** Downloads the script of a dependency that is a URL. Returns null for other dependencies. */
  private async downloadUrlScript(author: ScriptQuotaRequest, dependency: string): Promise<StoredAsset | null> {
    const parsed = parseDependency(dependency, this.options.catalogue);
    if (parsed.kind !== "address") return null;
    const releaseSlot = await this.slots.address.enter(author.appId);
    try {
      return await this.addresses.storeScript(author, dependency, parsed.url, URL_RECHECK_TIMEOUT_MS);
    } finally {
      releaseSlot();
    }
  }

  /** True if the stored script belongs to this dependency. Needed because an import can contain the hash of any script. */
  private isScriptOf({ package: name }: ScriptFacts, dependency: string): boolean {
    try {
      const parsed = parseDependency(dependency, this.options.catalogue);
      return parsed.kind === "npm" ? parsed.name + parsed.subpath === name : parsed.kind === "address" && name === null;
    } catch {
      return false;
    }
  }

  stop(): void {
    this.bundler.stop();
  }

  bundleSource(source: SourceBuildJob): Promise<BuiltSourceScript> {
    return this.bundler.bundleSource(source);
  }

  readRepository(repository: RepositoryReadJob, pack: Buffer): Promise<unknown> {
    return this.bundler.readRepository(repository, pack);
  }

  /**
   * Returns an object whose keys are the names that the code of an action can import. Each value is a JavaScript expression for the
   * package: `undefined` for a package that could not be resolved.
   */
  buildImports(
    dependencies: readonly string[],
    knownAssets: readonly StoredAsset[],
    { assets, lateAssets }: ResolvedDependencies,
  ): Record<string, string> {
    const pairs = dependencies.flatMap((dependency): [string, string][] => {
      const entry = this.options.catalogue.get(dependency);
      if (entry?.namespace) return [[dependency, `Svc.${entry.namespace}`]];
      if (entry || /^https?:/i.test(dependency)) return [];
      const { global } = assets.get(dependency) ?? findStoredAsset(dependency, [...knownAssets, ...lateAssets]) ?? {};
      const expression = global === undefined ? "undefined" : createGlobalExpression(global);
      return [dependency, getImportName(dependency)].map((name) => [name, expression]);
    });
    return Object.fromEntries(pairs);
  }

  /** Deletes scripts and chosen versions that are no longer used. Returns the time of the next call as Unix time in milliseconds. */
  async sweep(): Promise<number> {
    await this.scripts.sweep();
    return Date.now() + SWEEP_INTERVAL_MS;
  }

  /**
   * Resolves the dependencies one after the other, until one fails. Do not call this method in a transaction, because it downloads
   * packages. Never rejects: the result contains the error (`firstError`).
   */
  async resolve(
    author: ScriptQuotaRequest,
    dependencies: readonly string[],
    assetsBefore: readonly StoredAsset[],
    exportedAssets = NO_EXPORTED_ASSETS,
  ): Promise<ResolvedDependencies> {
    const assets = new Map<string, StoredAsset>();
    const knownAssets = [...exportedAssets.storedAssets, ...assetsBefore];
    const had = new Set(listStoredScriptHashes(assetsBefore));
    const deadline = performance.now() + SAVE_TIMEOUT_MS;
    try {
      for (const dependency of new Set(dependencies)) {
        if (performance.now() > deadline)
          throw createDependencyError(
            dependency,
            "was not resolved in time, because the dependencies before it took too long; save again",
            REGISTRY_DOWN_RETRY_SECONDS,
          );
        const knownAsset = knownAssets.find(({ name }) => name === dependency);
        const asset = await this.resolveAsset(author, dependency, knownAsset, exportedAssets.versions.get(dependency));
        if (isStoredScript(asset) && !had.has(asset.sha256)) await this.quota.countStoredScript(author, asset);
        assets.set(dependency, asset);
      }
      requireDifferentGlobals(assets, knownAssets);
      return { ...NO_RESOLVED_DEPENDENCIES, assets };
    } catch (fault) {
      return { ...NO_RESOLVED_DEPENDENCIES, assets, firstError: fault };
    }
  }

  /** Downloads scripts whose URLs did not respond at an earlier save. Never rejects: the result contains the error (`firstError`). */
  async resolveMissing(
    author: ScriptQuotaRequest,
    dependencies: readonly string[],
    knownAssets: readonly StoredAsset[],
  ): Promise<ResolvedDependencies> {
    const lateAssets: StoredAsset[] = [];
    let fault: unknown = null;
    const deadline = performance.now() + MISSING_SCRIPTS_TIMEOUT_MS;
    const missingDependencies = [...new Set(dependencies)].filter(
      (dependency) => findStoredAsset(dependency, knownAssets) === undefined,
    );
    for (const dependency of missingDependencies) {
      if (performance.now() > deadline) break;
      try {
        const asset = await this.downloadUrlScript(author, dependency);
        if (asset && isStoredScript(asset)) lateAssets.push(asset);
      } catch (error) {
        fault ??= error;
      }
    }
    return { ...NO_RESOLVED_DEPENDENCIES, lateAssets, firstError: fault };
  }

  /** Reads the assets (records of scripts) of an exported action. Skips invalid records and unknown scripts. */
  async readExportedAssets(assets: unknown): Promise<ExportedAssets> {
    const entries = (Array.isArray(assets) ? assets.slice(0, DEPENDENCIES_MAX) : []).flatMap((asset: unknown) => {
      const { name, version, integrity } = isObject(asset) ? asset : {};
      const sha256 = parseIntegritySha256(integrity);
      if (typeof name !== "string" || sha256 === null) return [];
      return [{ name, sha256, version: typeof version === "string" ? valid(version) : null }];
    });
    const scriptsByHash = new Map(
      (await this.scripts.findByHash(entries.map(({ sha256 }) => sha256))).map((scriptFacts) => [
        scriptFacts.sha256,
        scriptFacts,
      ]),
    );
    const storedAssets = entries.flatMap(({ name, sha256 }) => {
      const facts = scriptsByHash.get(sha256);
      return facts && this.isScriptOf(facts, name) ? [toStoredScriptAsset(name, facts)] : [];
    });
    return {
      storedAssets,
      versions: new Map(entries.flatMap(({ name, version }) => (version ? [[name, version]] : []))),
    };
  }

  /**
   * Returns the assets of all dependencies. Sends no network requests, so that a transaction can call this method.
   * @throws ActionError DEPENDENCY_UNRESOLVED, or `firstError` of `resolved`
   */
  collectAssets(
    dependencies: readonly string[],
    knownAssets: readonly StoredAsset[],
    resolved: ResolvedDependencies,
  ): StoredAsset[] {
    const { assets, lateAssets, firstError } = resolved;
    return [...new Set(dependencies)].map((dependency) => {
      const foundAsset = assets.get(dependency);
      if (foundAsset) return foundAsset;
      const parsed = parseDependency(dependency, this.options.catalogue);
      if (parsed.kind === "served") return parsed.asset;
      const storedAsset = findStoredAsset(dependency, [...knownAssets, ...lateAssets]);
      if (storedAsset) return storedAsset;
      if (firstError !== null) throw firstError;
      const known = knownAssets.find(({ name }) => name === dependency);
      // A URL is allowed without a stored script: pages and runs then load the URL themselves. Other dependencies need a script.
      if (known && parsed.kind === "address") return known;
      const reason =
        "has no stored script: another save changed this dependency at the same time, or the catalogue no longer contains it";
      throw createDependencyError(dependency, `${reason}; save the action again`, 1);
    });
  }
}
