/** Catalogue of packages that the service itself provides, and the parser of an action's `dependencies`. Sends no requests. */
import npa from "npm-package-arg";
import type { Asset, StoredAsset } from "../data/action-types.js";
import { ActionError } from "../errors.js";
import { describeValue, isObject } from "./describe-value.js";
import builtIn from "./packages.json" with { type: "json" };

/** Modes in which a package can run on the server, the cheapest first: JavaScript only, JavaScript with network functions, browser page. */
const PACKAGE_MODES = ["isolate", "network-isolate", "document"] as const;
export type PackageMode = (typeof PACKAGE_MODES)[number];

/**
 * Package that the service provides. Code uses it as `Svc.<namespace>`, unless `namespace` is null. The script of the package is at the
 * `path` of this service or at the external `url`.
 */
export interface PackageEntry {
  name: string;
  namespace: string | null;
  path?: string;
  url?: string;
  /** True if the package works without the client library. An array names the functions that work without it. */
  standalone?: boolean | readonly string[];
  /** Cheapest mode with all globals that the package uses. Default `document`. */
  mode?: PackageMode;
  /** False if the package sends no network requests. Default true, but false if `mode` is `isolate`. */
  network?: boolean;
  /** True if most uses of the package need only the JavaScript language, so that a run is tried in an isolate first. */
  canBeTried?: boolean;
  /** Names of functions that need a browser page. Code with one of these names runs in a page. */
  inDocument?: readonly string[];
  /** Names of the functions that need no browser page. Code that uses any other function of the package runs in a page. */
  withoutDocument?: readonly string[];
}

export type PackageCatalogue = ReadonlyMap<string, PackageEntry>;

/** Packages that the service provides: those in the API specification (Code rules 3), and svc-ai. */
export const BUILT_IN_PACKAGES = builtIn as readonly PackageEntry[];

const PACKAGE_NAME_PATTERN = /^[a-z0-9][a-z0-9._-]{0,99}$/;
const NAMESPACE_NAME_PATTERN = /^[A-Za-z][A-Za-z0-9]{0,99}$/;
const SERVED_PATH_PATTERN = /^\/[A-Za-z0-9/._-]+$/;
const URL_MAX_CHARACTERS = 2048;

/**
 * Returns the built-in packages, and the operator's packages, which replace built-in ones with the same name.
 * @param extra parsed content of the operator's file: an array of {@link PackageEntry}
 * @throws Error with the path of the invalid entry
 */
export function createPackageCatalogue(extra: unknown = []): PackageCatalogue {
  if (!Array.isArray(extra))
    throw new Error(`the content must be an array of package entries (got ${describeValue(extra)})`);
  const catalogue = new Map(BUILT_IN_PACKAGES.map((entry) => [entry.name, entry]));
  for (const [index, value] of extra.entries()) {
    const entry = parsePackageEntry(value, `packages[${index}]`);
    catalogue.set(entry.name, entry);
  }
  return catalogue;
}

function parsePackageEntry(value: unknown, where: string): PackageEntry {
  if (!isObject(value)) throw new Error(`${where} must be an object (got ${describeValue(value)})`);
  const { name, namespace = null, path, url, standalone = false, mode = "document" } = value;
  // Operators' files may still contain `mayDoWithLess`, the name of `canBeTried` before version 0.2.0.
  const {
    mayDoWithLess = false,
    canBeTried = mayDoWithLess,
    network = true,
    inDocument = [],
    withoutDocument = [],
  } = value;
  const expectField = (isValid: boolean, field: string, expected: string, received: unknown) => {
    if (!isValid) throw new Error(`${where}.${field} must be ${expected} (got ${describeValue(received)})`);
  };
  const matchesPattern = (text: unknown, pattern: RegExp): text is string =>
    typeof text === "string" && pattern.test(text);
  expectField(
    matchesPattern(name, PACKAGE_NAME_PATTERN),
    "name",
    "at most 100 lower-case letters, digits, dots, dashes and underscores",
    name,
  );
  expectField(
    namespace === null || matchesPattern(namespace, NAMESPACE_NAME_PATTERN),
    "namespace",
    "a property name or null",
    namespace,
  );
  expectField(
    (path === undefined) !== (url === undefined),
    "path",
    'set if "url" is not set, and absent otherwise',
    path,
  );
  expectField(path === undefined || matchesPattern(path, SERVED_PATH_PATTERN), "path", "an absolute path", path);
  expectField(url === undefined || findExternalUrlFault(url) === null, "url", "an https URL", url);
  const areFunctionNames = (list: unknown) =>
    Array.isArray(list) && list.every((element) => matchesPattern(element, NAMESPACE_NAME_PATTERN));
  const isStandalone = typeof standalone === "boolean" || areFunctionNames(standalone);
  expectField(isStandalone, "standalone", "true, false or an array of function names", standalone);
  expectField(PACKAGE_MODES.includes(mode as PackageMode), "mode", `one of ${PACKAGE_MODES.join(", ")}`, mode);
  expectField(typeof canBeTried === "boolean", "canBeTried", "true or false", canBeTried);
  expectField(typeof network === "boolean", "network", "true or false", network);
  expectField(areFunctionNames(inDocument), "inDocument", "an array of function names", inDocument);
  expectField(areFunctionNames(withoutDocument), "withoutDocument", "an array of function names", withoutDocument);
  return { ...value, canBeTried } as unknown as PackageEntry;
}

export type Dependency =
  | { kind: "served"; asset: StoredAsset }
  /** `subpath` is the module of the package, such as `/sha256`; "" for the main module. */
  | { kind: "npm"; name: string; range: string; subpath: string }
  | { kind: "address"; url: string };

/** Matches package names that are reserved for the service. An action cannot load a package with such a name from a registry. */
const RESERVED_NAME_PATTERN = /^svc-/i;
const SPEC_MAX_CHARACTERS = 300;

/** Creates the error for a dependency that cannot be loaded. @param retryAfter seconds after which a retry may succeed */
export function createDependencyError(dependency: string, reason: string, retryAfter?: number): ActionError {
  const details = retryAfter === undefined ? {} : { retryAfter };
  return new ActionError("DEPENDENCY_UNRESOLVED", `dependencies: ${describeValue(dependency)} ${reason}`, details);
}

/** Parses one element of an action's `dependencies`. @throws ActionError DEPENDENCY_UNRESOLVED if it is invalid */
export function parseDependency(dependency: string, catalogue: PackageCatalogue): Dependency {
  const entry = catalogue.get(dependency);
  if (entry?.path !== undefined) return { kind: "served", asset: { name: entry.name, path: entry.path } };
  const address = entry?.url ?? dependency;
  if (/^[a-z][a-z0-9+.-]*:/i.test(address)) {
    const urlFault = findExternalUrlFault(address);
    if (urlFault !== null) throw createDependencyError(dependency, urlFault);
    return { kind: "address", url: new URL(address).href };
  }
  if (RESERVED_NAME_PATTERN.test(dependency))
    throw createDependencyError(
      dependency,
      'is not a package of this service; names that start with "svc-" are reserved for the service',
    );
  return { kind: "npm", ...parseNpmSpec(dependency) };
}

/** Matches a package name, an optional version, and the path of a module: `@noble/hashes@1/sha256`. */
const NAME_WITH_SUBPATH_PATTERN = /^((?:@[^/@]+\/)?[^/@]+(?:@[^/@]+)?)((?:\/[\w.-]+)+)$/;

/**
 * Parses the name of an npm package, with an optional version and module path. Rejects names that npm resolves to a folder or another host.
 */
function parseNpmSpec(dependency: string): { name: string; range: string; subpath: string } {
  const rejectionReason =
    "is not a package of this service, an npm package such as lodash or @scope/name@^2, or an https URL";
  const isPlain = dependency.length <= SPEC_MAX_CHARACTERS && !/[\s\\%]/.test(dependency.trim());
  if (!isPlain || dependency !== dependency.trim()) throw createDependencyError(dependency, rejectionReason);
  const [, spec = dependency, subpath = ""] = NAME_WITH_SUBPATH_PATTERN.exec(dependency) ?? [];
  const hasDotSegment = subpath.split("/").some((segment) => segment === "." || segment === "..");
  try {
    const { type, name, rawSpec } = npa(spec, "/");
    const isRegistrySpec = type === "version" || type === "range" || type === "tag";
    if (isRegistrySpec && name && !hasDotSegment)
      return { name, range: rawSpec === "*" && !spec.endsWith("@*") ? "" : rawSpec, subpath };
  } catch {
    // Ignores the error. npa throws for an invalid name or version; then the next statement throws an error with advice.
  }
  throw createDependencyError(dependency, rejectionReason);
}

/** True if a package in a registry can have this name. Names in a package's dependencies are untrusted, and become part of a URL. */
export function isPackageName(name: string): boolean {
  try {
    const { type, name: parsedName } = npa(name, "/");
    return (
      parsedName === name &&
      (type === "range" || type === "tag" || type === "version") &&
      /^[\w@/.~-]{1,214}$/.test(name)
    );
  } catch {
    return false;
  }
}

/** Script of a dependency that is stored in the database. `sha256` is its hash in hexadecimal. */
export type StoredScriptAsset = StoredAsset & { sha256: string };

export const isStoredScript = (asset: StoredAsset): asset is StoredScriptAsset => asset.sha256 !== undefined;

export const getStoredScriptPath = (sha256: string): string => `/client/kept/${sha256}.js`;

export type AddAssetUrls = (stored: readonly StoredAsset[]) => Asset[];

/**
 * Returns the scripts of dependencies, each with the URL from which browsers can load it (specification, Action object, `assets`).
 * @param baseUrl URL of the service without a trailing slash
 */
export function addAssetUrls(stored: readonly StoredAsset[], catalogue: PackageCatalogue, baseUrl: string): Asset[] {
  return stored.map(({ name, path, url, sha256, ...rest }) => {
    // Older versions of the service also stored `url`. If the catalogue has a path for the package, this path replaces the stored URL,
    // which may contain an old address of the service.
    const servedPath = sha256 !== undefined || url === undefined ? path : catalogue.get(name)?.path;
    return servedPath === undefined
      ? { name, url: url!, path, ...rest }
      : { name, url: baseUrl + servedPath, path: servedPath, ...rest };
  });
}

/** Returns null for a valid https URL, otherwise the second half of an error message ("is not …"). */
function findExternalUrlFault(text: unknown): string | null {
  if (typeof text !== "string") return "is not a URL";
  if (text.length > URL_MAX_CHARACTERS) return `is longer than ${URL_MAX_CHARACTERS} characters`;
  // Rejects white space and backslashes, because the URL parser drops or converts them: the checked URL would differ from `text`.
  if (/[\s\\]/.test(text) || !URL.canParse(text)) return "is not a valid URL";
  const url = new URL(text);
  if (url.protocol !== "https:") return "must be an https URL";
  return url.username !== "" || url.password !== "" ? "must not contain a user name or password" : null;
}

/**
 * True if `Svc` occurs in the code without one of `members` after it, also in a comment. `members` are regular expressions of members of
 * `Svc`, such as `App\\.Settings`.
 */
function usesOtherMembers(code: string, members: readonly string[]): boolean {
  return code.replaceAll(new RegExp(`\\bSvc\\.(?:${members.join("|")})\\b`, "g"), "").includes("Svc");
}

/** Functions of `Svc` (as regular expressions) that need no client library: the small script /client/svc-requests.js provides them. */
const REQUEST_FUNCTIONS = ["App\\.V3\\.Actions\\.request", "App\\.Settings\\.get"];

export const usesRequestFunctions = (code: string): boolean =>
  new RegExp(`\\bSvc\\.(?:${REQUEST_FUNCTIONS.join("|")})\\b`).test(code);

/** Returns the name by which code imports a dependency: the dependency without its version. */
export const getImportName = (dependency: string): string => dependency.replace(/(?<=[^/@])@[^/]*/, "");

/**
 * True if the code may need the client library. False if the code does not contain `Svc`. Also false if all its dependencies work without
 * the library, and it uses `Svc` only for them and for REQUEST_FUNCTIONS.
 */
export function needsClientLibrary(
  code: string,
  dependencies: readonly string[],
  catalogue: PackageCatalogue,
): boolean {
  if (!code.includes("Svc")) return false;
  const entries = dependencies.flatMap((name) => catalogue.get(name) ?? []).filter(({ standalone }) => standalone);
  if (entries.length < dependencies.length) return true;
  const memberPatterns = entries.map(({ namespace, standalone }) =>
    Array.isArray(standalone) ? `${namespace}\\.(?:${standalone.join("|")})` : `${namespace}`,
  );
  return usesOtherMembers(code, [...REQUEST_FUNCTIONS, ...memberPatterns]);
}

/**
 * Returns the mode for code that uses the client library: `network-isolate` if the code uses `Svc` only for its packages of the service and
 * for REQUEST_FUNCTIONS, otherwise `document`.
 */
export function findModeForClientLibraryCode(
  code: string,
  dependencies: readonly string[],
  catalogue: PackageCatalogue,
): PackageMode {
  const packageNamespaces = dependencies.flatMap((name) => catalogue.get(name)?.namespace ?? []);
  const namespaces = [...packageNamespaces, ...(usesRequestFunctions(code) ? REQUEST_FUNCTIONS : [])];
  return namespaces.length > 0 && !usesOtherMembers(code, namespaces) ? "network-isolate" : "document";
}

export type PackageRequirement = Required<Pick<PackageEntry, "mode" | "network" | "canBeTried">>;

function usesOtherFunctions(code: string, namespace: string | null, functions: readonly string[]): boolean {
  return usesOtherMembers(code, [`${namespace}\\.(?:${functions.join("|")})`, `(?!${namespace}\\b)\\w+`]);
}

/**
 * Returns the mode and the network access that `code` needs to use the package.
 * @param isShared true if other code, such as another package, may also call the package
 */
export function findPackageRequirement(entry: PackageEntry, code: string, isShared = false): PackageRequirement {
  const { namespace, mode = "document", network = mode !== "isolate", canBeTried = false } = entry;
  const { inDocument = [], withoutDocument = [] } = entry;
  const containsOneOf = (words: readonly string[]) =>
    words.length > 0 && new RegExp(`\\b(?:${words.join("|")})\\b`).test(code);
  const mayCallOthers =
    withoutDocument.length > 0 && (isShared || usesOtherFunctions(code, namespace, withoutDocument));
  const needsDocument = mayCallOthers || containsOneOf(inDocument);
  return needsDocument ? { mode: "document", network, canBeTried: false } : { mode, network, canBeTried };
}
