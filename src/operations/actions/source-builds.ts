/** Bundles the source files of an action (field `source`) to its code, and caches the bundles in memory. Does not validate the code. */
import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { LRUCache } from "lru-cache";
import type { ActionRow } from "../../data/action.js";
import type { ActionSource } from "../../data/action-types.js";
import { BundlerBusyError, PackageError, SandboxUnavailableError } from "../../engine/bundler/fault.js";
import type { BuiltSourceScript } from "../../engine/bundler/source-script.js";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { ActionError } from "../../errors.js";
import { MANIFEST_MAX_BYTES } from "../../limits.js";
import {
  ENTRY_POINT_FILE_NAMES,
  findActionSourceFault,
  omitActionSourceMap,
  toStoredActionSource,
} from "../../rules/action-source.js";
import { isObject } from "../../rules/describe-value.js";
import type { DependencyResolver, ResolvedDependencies } from "../packages/packages.js";

/** Maximum number of concurrent builds in this process. Each app has at most one. */
const MAX_CONCURRENT_BUILDS = 3;
/**
 * Maximum size of the cached builds. While an import holds locks, it must find the builds of all its actions here. A bundle and its source
 * map are together about 1.4 times as long as the source (measured), and take two bytes per character if one of them is not Latin-1.
 */
const CACHE_MAX_BYTES = 3 * MANIFEST_MAX_BYTES;
const CODE_MAX_BYTES = 2 * 1024 * 1024;
/** Seconds after which a client should repeat a request that failed because the bundler was busy. */
const RETRY_SECONDS = 5;

/** Valid code for an action whose source files cannot be built, so that its other fields can still be validated. */
const PLACEHOLDER_CODE = "async function execute() {}";

/** Fields of an action, with `code` built from its source files if a build was needed. After a failed build, `code` is a placeholder. */
export interface ActionDataWithBuiltCode {
  data: unknown;
  /** Error message of a failed build; otherwise null. */
  fault: string | null;
}

type SourceBuild = BuiltSourceScript | { fault: string };

const readProperty = (data: Record<string, unknown>, key: string): unknown =>
  Object.hasOwn(data, key) ? data[key] : undefined;

function listDependenciesAfterChange(data: Record<string, unknown>, current: ActionRow | null): string[] {
  const input = readProperty(data, "dependencies") ?? current?.dependencies;
  return Array.isArray(input) ? input.filter((element): element is string => typeof element === "string") : [];
}

/**
 * Returns the source files to build. Returns null if the change removes them: `data` has `source: null`, or `code` without `source`.
 * Returns undefined if the code need not be built.
 */
function selectSourceToBuild(data: Record<string, unknown>, current: ActionRow | null): unknown {
  const input = readProperty(data, "source");
  if (input !== undefined) return input;
  if (hasCode(data)) return null;
  // Built code contains the imports of the dependencies, so changed dependencies require a new build.
  return current?.source && readProperty(data, "dependencies") !== undefined ? current.source : undefined;
}

const hasCode = (data: Record<string, unknown>): boolean => (readProperty(data, "code") ?? null) !== null;

function isUnchanged(source: ActionSource, dependencies: readonly string[], current: ActionRow | null): boolean {
  if (!current?.source) return false;
  const isSame = isDeepStrictEqual(omitActionSourceMap(source), omitActionSourceMap(current.source));
  return isSame && isDeepStrictEqual(dependencies, current.dependencies);
}

export class SourceBuilds {
  private readonly buildSlots = new FairSemaphore(MAX_CONCURRENT_BUILDS, 1);
  private readonly buildsByKey = new LRUCache<string, { build: SourceBuild }>({
    maxSize: CACHE_MAX_BYTES,
    sizeCalculation: ({ build }) =>
      100 + 2 * ("code" in build ? build.code.length + build.map.length : build.fault.length),
  });

  constructor(private readonly options: { packages: DependencyResolver }) {}

  private async buildSource(
    appId: number,
    { language, files }: ActionSource,
    globals: Record<string, string>,
  ): Promise<SourceBuild> {
    const entry = ENTRY_POINT_FILE_NAMES[language].find((name) => Object.hasOwn(files, name))!;
    const job = { entry, files, packages: globals, maxBytes: CODE_MAX_BYTES };
    const key = createHash("sha256").update(JSON.stringify(job)).digest("base64");
    const cachedBuild = this.buildsByKey.get(key);
    if (cachedBuild) return cachedBuild.build;
    const releaseBuildSlot = await this.buildSlots.enter(appId);
    try {
      const build = this.buildsByKey.get(key)?.build ?? (await this.options.packages.bundleSource(job));
      this.buildsByKey.set(key, { build });
      return build;
    } catch (error) {
      if (error instanceof BundlerBusyError || error instanceof SandboxUnavailableError)
        throw new ActionError("OVERLOADED", `the service cannot build "source" now: ${error.message}`, {
          retryAfter: RETRY_SECONDS,
        });
      if (!(error instanceof PackageError)) throw error;
      const build = { fault: error.message };
      this.buildsByKey.set(key, { build });
      return build;
    } finally {
      releaseBuildSlot();
    }
  }

  /**
   * Returns `data` with `code` built from its source files. If nothing has changed, takes the stored code of the draft. If there are no
   * source files to build, returns `data` with its own code. If the source files are invalid or the build fails, `code` is a placeholder.
   * After a failed build, `fault` is the error message.
   * @param current the draft that `data` changes; null for a new action
   * @param resolved scripts of the resolved dependencies
   * @throws OVERLOADED if the bundler is busy or unavailable
   */
  async addBuiltCode(
    appId: number,
    data: unknown,
    current: ActionRow | null,
    resolved: ResolvedDependencies,
  ): Promise<ActionDataWithBuiltCode> {
    if (!isObject(data)) return { data, fault: null };
    const source = selectSourceToBuild(data, current);
    if (source === undefined) return { data, fault: null };
    if (source === null) return { data: { ...data, source: null }, fault: null };
    if (findActionSourceFault(source) !== null)
      return { data: { ...data, code: PLACEHOLDER_CODE, source }, fault: null };
    const stored = { ...toStoredActionSource(source)!, map: undefined };
    const dependencies = listDependenciesAfterChange(data, current);
    if (isUnchanged(stored, dependencies, current)) {
      return { data: { ...data, code: current!.code, source: current!.source }, fault: null };
    }
    const build = await this.buildSource(
      appId,
      omitActionSourceMap(stored),
      this.options.packages.buildImports(dependencies, current?.assets ?? [], resolved),
    );
    if ("fault" in build)
      return { data: { ...data, code: PLACEHOLDER_CODE, source: omitActionSourceMap(stored) }, fault: build.fault };
    return {
      data: { ...data, code: build.code, source: { ...omitActionSourceMap(stored), map: build.map } },
      fault: null,
    };
  }
}
