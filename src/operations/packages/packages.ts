/**
 * What dependencies become: files of the service, or scripts that are fetched once, ahead of the save that names them, and kept by their
 * content. Nothing is fetched for what an action has already, and nothing at all when it runs.
 */
import type { Logger } from "pino";
import { valid } from "semver";
import type { DataSource } from "typeorm";
import type { Config } from "../../config.js";
import type { StoredAsset } from "../../data/action-types.js";
import { BundlerBusyError, PackageFault, UncontainedError } from "../../engine/bundler/fault.js";
import { type Bundler, createBundler } from "../../engine/bundler.js";
import { createCheckedConnections } from "../../engine/checked-connections.js";
import { isPublicAddress } from "../../engine/egress-proxy.js";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { lookupFor } from "../../engine/public-lookup.js";
import { ActionError } from "../../errors.js";
import { described, isObject } from "../../rules/described.js";
import { isAllowedLicence } from "../../rules/licences.js";
import { alternativeTo } from "../../rules/package-alternatives.js";
import {
  type Catalogue,
  type Dependency,
  importName,
  isKept,
  type KeptAsset,
  readDependency,
  unresolved,
} from "../../rules/packages.js";
import type { Intake } from "../records/intake.js";
import { createAddresses, LOOK_LIMIT_MS } from "./addresses.js";
import {
  assetOf,
  createKeptScripts,
  type KeptScripts,
  keptScripts,
  type Part,
  type ScriptFacts,
  sha256In,
  sha256Of,
} from "./kept-scripts.js";
import type { PackageProbe } from "./package-probe.js";
import { gather } from "./package-tree.js";
import { AWAY_RETRY_SECONDS, createRegistry, type Registry } from "./registry.js";
import { type Author, createScriptRoom } from "./script-room.js";

/** Packages that are fetched and bundled at once in this process, and addresses that are asked, each for another app. */
const PACKAGES_AT_ONCE = 4;
const ADDRESSES_AT_ONCE = 16;
/** Fetching one with all that it needs. */
const FETCH_LIMIT_MS = 60_000;
/** What one save may have fetched; what was is kept, so that the next goes on from there. */
const SAVE_LIMIT_MS = 120_000;
/** What a save that gives no dependencies waits for addresses that could not be reached before, all of them. */
const CATCH_UP_LIMIT_MS = 10_000;
const SWEEP_EVERY_MS = 600_000;
/** As many as an action has dependencies. */
const PROMISES_MAX = 100;
const WEB_PORTS: readonly number[] = [80, 443];

export interface PackagesOptions {
  db: DataSource;
  catalogue: Catalogue;
  intake: Intake;
  /** null: packages of npm are switched off. `url` without a closing slash; without its sandbox the bundler may have a network. */
  npm: Config["npm"];
  probe: PackageProbe;
  allowPrivateNetwork: boolean;
  egressAddress: string | null;
  log: Logger;
}

/**
 * What was found out ahead of a save: assets by their dependency, scripts for those of the action's that had none, and why the first of the
 * others has none.
 */
export interface Resolved {
  assets: ReadonlyMap<string, StoredAsset>;
  late: readonly StoredAsset[];
  fault: unknown;
}

/** What an export says that dependencies became: scripts that are known here, and exact versions of others. */
export interface Promised {
  kept: readonly KeptAsset[];
  versions: ReadonlyMap<string, string>;
}

export const NOTHING_PROMISED: Promised = { kept: [], versions: new Map() };

export const NOTHING_RESOLVED: Resolved = { assets: new Map(), late: [], fault: null };

function connectionsOf({ allowPrivateNetwork, egressAddress, npm }: PackagesOptions) {
  const { hostname = "", port = "", protocol = "" } = npm ? new URL(npm.url) : {};
  const registry = `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
  const shared = {
    mayReach: (address: string) => allowPrivateNetwork || isPublicAddress(address),
    mayUsePort: (one: number) => allowPrivateNetwork || WEB_PORTS.includes(one),
    resolve: lookupFor(allowPrivateNetwork),
    localAddress: egressAddress,
  };
  return {
    elsewhere: createCheckedConnections(shared),
    // The operator says where the registry is, and may have it in a private network.
    npm: createCheckedConnections({ ...shared, trusted: new Set(npm ? [registry] : []) }),
  };
}

/** Why a package could not be bundled, in its author's words; 503 where that is not its own fault. */
export function bundlingRefused(dependency: string, error: unknown): unknown {
  if (error instanceof PackageFault) {
    const instead = alternativeTo(dependency);
    return unresolved(dependency, `cannot be used: ${error.message}${instead && `; use ${instead} instead`}`);
  }
  if (error instanceof BundlerBusyError || error instanceof UncontainedError)
    return unresolved(dependency, `cannot be bundled now: ${error.message}`, AWAY_RETRY_SECONDS);
  return error;
}

const globalExpression = (name: string): string =>
  /^[A-Za-z_$][\w$]*$/.test(name) ? name : `globalThis[${JSON.stringify(name)}]`;

const keptFor = (dependency: string, assets: readonly StoredAsset[]): StoredAsset | undefined =>
  assets.find((asset) => asset.name === dependency && isKept(asset));

/** A choice of the registry, as the database names it. */
const specOf = ({ name, subpath, wanted }: Dependency & { kind: "npm" }) => `${name}${subpath}@${wanted}`;

/** Two packages under one global name: the later would replace the earlier without a word. @throws DEPENDENCY_UNRESOLVED */
function refuseSameGlobal(assets: Map<string, StoredAsset>, before: readonly StoredAsset[]): void {
  const known = new Set(before.map(({ name }) => name));
  const byGlobal = new Map<string, string>();
  for (const [dependency, { global }] of assets) {
    if (global === undefined) continue;
    const other = byGlobal.get(global);
    byGlobal.set(global, dependency);
    // Two that an action has already stay, so that it can still be saved.
    if (other === undefined || (known.has(other) && known.has(dependency))) continue;
    const [added, present] = known.has(dependency) ? [other, dependency] : [dependency, other];
    assets.delete(added);
    throw unresolved(added, `has the global name ${global}, as ${described(present)} has; list only one of them`);
  }
}

export type Packages = ReturnType<typeof createPackages>;

export function createPackages(options: PackagesOptions) {
  const { db, catalogue, intake, npm, probe, log } = options;
  const connections = connectionsOf(options);
  const scripts: KeptScripts = createKeptScripts(db);
  const bundler: Bundler = createBundler({ log, sandbox: npm?.sandbox ?? true });
  const registry: Registry | null = npm && createRegistry({ ...npm, connections: connections.npm });
  if (npm?.sandbox === false)
    log.warn(
      "NPM_SANDBOX=off: where user namespaces are not to be had, packages are bundled in a process with a network",
    );
  const lines = { npm: new FairSemaphore(PACKAGES_AT_ONCE, 1), address: new FairSemaphore(ADDRESSES_AT_ONCE, 1) };
  const room = createScriptRoom(scripts);
  const addresses = createAddresses({ connections: connections.elsewhere, scripts, room, intake });

  function judgeLicences(dependency: string, parts: readonly Part[]): void {
    const allowed = npm?.licences;
    const refused = allowed && parts.find(({ licence }) => !isAllowedLicence(licence, allowed));
    if (!refused) return;
    const { name, version, licence } = refused;
    const stated = licence === null ? "states no licence" : `has the licence ${licence}`;
    throw unresolved(
      dependency,
      `cannot be used: ${name}@${version} ${stated}, and this service allows ${allowed.join(", ")}`,
    );
  }

  async function made(author: Author, dependency: string, npm: Dependency & { kind: "npm" }): Promise<ScriptFacts> {
    const { name, wanted, subpath } = npm;
    const asking = { dependency, signal: AbortSignal.timeout(FETCH_LIMIT_MS) };
    const { choice, archives } = await gather(registry!, asking, name, wanted);
    const exact = specOf({ ...npm, wanted: choice.version });
    const specs = [specOf(npm), exact];
    const before = await scripts.chosen(registry!.registry, exact);
    if (before) {
      await scripts.choose(registry!.registry, specs, before);
      return before;
    }
    const { source, global, names, parts, declarations } = await bundler
      .bundle(await archives(), subpath)
      .catch((error: unknown) => {
        throw bundlingRefused(dependency, error);
      });
    judgeLicences(dependency, parts);
    const text = Buffer.from(source);
    const fault = await probe({ name: dependency, sha256: sha256Of(text), source }, asking.signal);
    if (fault !== null) throw bundlingRefused(dependency, new PackageFault(fault));
    const types = declarations && Buffer.from(JSON.stringify(declarations));
    const bytes = text.length + (types?.length ?? 0);
    await room.take(author, dependency, sha256Of(text), bytes);
    intake.take(author.caller, author.appId, bytes);
    const { version } = choice;
    const licence = parts[0]!.licence;
    const facts = await scripts.keep(text, { package: name + subpath, version, licence, global, names, parts }, types);
    await scripts.choose(registry!.registry, specs, facts);
    return facts;
  }

  async function ofNpm(author: Author, dependency: string, npm: Dependency & { kind: "npm" }) {
    if (!registry)
      throw unresolved(dependency, "is no package of the catalogue, and packages of npm are switched off here");
    const before = await scripts.chosen(registry.registry, specOf(npm));
    const facts = before?.fresh
      ? before
      : await made(author, dependency, npm).catch((error: unknown) => {
          // If the registry is unavailable, its last answer is used.
          if (before && error instanceof ActionError && error.details.retryAfter === AWAY_RETRY_SECONDS) return before;
          throw error;
        });
    // What is allowed may have changed since it was kept.
    judgeLicences(dependency, facts.parts);
    return assetOf(dependency, facts);
  }

  async function assetFor(
    author: Author,
    dependency: string,
    known: StoredAsset | undefined,
    version: string | undefined,
  ): Promise<StoredAsset> {
    const read = readDependency(dependency, catalogue);
    if (read.kind === "served") return read.asset;
    if (known && isKept(known))
      return read.kind === "address" ? addresses.lookAgain(author, dependency, read.url, known) : known;
    const leave = await lines[read.kind].enter(author.appId);
    try {
      const wanted = read.kind === "npm" && version !== undefined ? { ...read, wanted: version } : read;
      return wanted.kind === "npm"
        ? await ofNpm(author, dependency, wanted)
        : await addresses.keep(author, dependency, wanted.url);
    } finally {
      leave();
    }
  }

  /** Null for what is no address. @throws as `addresses.keep` */
  async function scriptOfAddress(author: Author, dependency: string): Promise<StoredAsset | null> {
    const read = readDependency(dependency, catalogue);
    if (read.kind !== "address") return null;
    const leave = await lines.address.enter(author.appId);
    try {
      return await addresses.keep(author, dependency, read.url, LOOK_LIMIT_MS);
    } finally {
      leave();
    }
  }

  /** Whether a script may stand for a dependency: a document from elsewhere says so, and its author may err. */
  function isScriptOf({ package: name }: ScriptFacts, dependency: string): boolean {
    try {
      const read = readDependency(dependency, catalogue);
      return read.kind === "npm" ? read.name + read.subpath === name : read.kind === "address" && name === null;
    } catch {
      return false;
    }
  }

  return {
    scripts,
    stop: bundler.stop,
    bundleSource: bundler.bundleSource,

    /** What the modules that code may import are in a run, as expressions by their names. Those that are not resolved are undefined there. */
    imports(
      dependencies: readonly string[],
      known: readonly StoredAsset[],
      { assets, late }: Resolved,
    ): Record<string, string> {
      const pairs = dependencies.flatMap((dependency): [string, string][] => {
        const entry = catalogue.get(dependency);
        if (entry?.namespace) return [[dependency, `Svc.${entry.namespace}`]];
        if (entry || /^https?:/i.test(dependency)) return [];
        const { global } = assets.get(dependency) ?? keptFor(dependency, [...known, ...late]) ?? {};
        const expression = global === undefined ? "undefined" : globalExpression(global);
        return [dependency, importName(dependency)].map((name) => [name, expression]);
      });
      return Object.fromEntries(pairs);
    },

    /** Removes unused scripts. @returns when to call it again, as Unix time in milliseconds */
    async sweep(): Promise<number> {
      await scripts.sweep();
      return Date.now() + SWEEP_EVERY_MS;
    },

    /** Resolves dependencies outside of any transaction, in their order, until the first that cannot be. Never rejects. */
    async resolve(
      author: Author,
      dependencies: readonly string[],
      before: readonly StoredAsset[],
      promised = NOTHING_PROMISED,
    ): Promise<Resolved> {
      const assets = new Map<string, StoredAsset>();
      const known = [...promised.kept, ...before];
      const had = new Set(keptScripts(before));
      const deadline = performance.now() + SAVE_LIMIT_MS;
      try {
        for (const dependency of new Set(dependencies)) {
          if (performance.now() > deadline)
            throw unresolved(
              dependency,
              "was not reached in time: what comes before it took too long",
              AWAY_RETRY_SECONDS,
            );
          const stands = known.find(({ name }) => name === dependency);
          const asset = await assetFor(author, dependency, stands, promised.versions.get(dependency));
          if (isKept(asset) && !had.has(asset.sha256)) await room.takeKept(author, asset);
          assets.set(dependency, asset);
        }
        refuseSameGlobal(assets, known);
        return { ...NOTHING_RESOLVED, assets };
      } catch (fault) {
        return { ...NOTHING_RESOLVED, assets, fault };
      }
    },

    /**
     * Looks in passing for scripts of addresses that could not be reached when the action listed them. `fault` is why the first that
     * answers has none. Never rejects.
     */
    async caughtUp(author: Author, dependencies: readonly string[], known: readonly StoredAsset[]): Promise<Resolved> {
      const late: StoredAsset[] = [];
      let fault: unknown = null;
      const deadline = performance.now() + CATCH_UP_LIMIT_MS;
      const missing = [...new Set(dependencies)].filter((dependency) => keptFor(dependency, known) === undefined);
      for (const dependency of missing) {
        if (performance.now() > deadline) break;
        try {
          const asset = await scriptOfAddress(author, dependency);
          if (asset && isKept(asset)) late.push(asset);
        } catch (error) {
          fault ??= error;
        }
      }
      return { ...NOTHING_RESOLVED, late, fault };
    },

    /** Reads an export's word on assets; what is none, or does not fit its dependency, is left out. */
    async promised(assets: unknown): Promise<Promised> {
      const entries = (Array.isArray(assets) ? assets.slice(0, PROMISES_MAX) : []).flatMap((one: unknown) => {
        const { name, version, integrity } = isObject(one) ? one : {};
        const sha256 = sha256In(integrity);
        if (typeof name !== "string" || sha256 === null) return [];
        return [{ name, sha256, version: typeof version === "string" ? valid(version) : null }];
      });
      const facts = new Map((await scripts.known(entries.map(({ sha256 }) => sha256))).map((one) => [one.sha256, one]));
      const kept = entries.flatMap(({ name, sha256 }) => {
        const one = facts.get(sha256);
        return one && isScriptOf(one, name) ? [assetOf(name, one)] : [];
      });
      return { kept, versions: new Map(entries.flatMap(({ name, version }) => (version ? [[name, version]] : []))) };
    },

    /**
     * Assets of dependencies, from those that were resolved before and the existing ones. Makes no request.
     * @throws DEPENDENCY_UNRESOLVED, and the error that prevented the first of them from being resolved
     */
    settle(dependencies: readonly string[], known: readonly StoredAsset[], resolved: Resolved): StoredAsset[] {
      const { assets, late, fault } = resolved;
      return [...new Set(dependencies)].map((dependency) => {
        const found = assets.get(dependency);
        if (found) return found;
        const read = readDependency(dependency, catalogue);
        if (read.kind === "served") return read.asset;
        // A script that another save has stored meanwhile stays, like every stored one.
        const kept = keptFor(dependency, [...known, ...late]);
        if (kept) return kept;
        if (fault !== null) throw fault;
        const before = known.find(({ name }) => name === dependency);
        // What the catalogue held once, and does not any more, is gone; an address is where it was.
        if (before && read.kind === "address") return before;
        throw unresolved(dependency, "was changed by another save meanwhile", 1);
      });
    },
  };
}
