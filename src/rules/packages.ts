/** Catalogue of built-in packages, and the parser of an action's `dependencies`. This file sends no requests. */
import npa from "npm-package-arg";
import type { Asset, StoredAsset } from "../data/action-types.js";
import { ActionError } from "../errors.js";
import { describeValue, isObject } from "./described.js";
import builtIn from "./packages.json" with { type: "json" };

/** Modes in which a package can run on the server, cheapest first (engine/browser/globals.ts). */
const PACKAGE_MODES = ["isolate", "network-isolate", "document"] as const;
export type PackageMode = (typeof PACKAGE_MODES)[number];

/**
 * A package of the catalogue. `namespace` is its property of `Svc`, or null. It has either `path` (this service serves
 * it) or `url` (an external https URL). Without both, the specification names it but it is not built yet.
 */
export interface PackageEntry {
  name: string;
  namespace: string | null;
  path?: string;
  url?: string;
  /** True if the package works without the client library; or the names of the functions that work without it. */
  standalone?: boolean | readonly string[];
  /** Cheapest mode with all globals that the package uses; by default `document`. A package with a `url` always runs in a document. */
  mode?: PackageMode;
  /** False if the package makes no requests. Default true, except for `isolate`. */
  network?: boolean;
  /** True if most uses of the package need only the language, so that a run with it is first tried in `isolate`. */
  canBeTried?: boolean;
  /** Words that make code run in a document if the code contains them. */
  inDocument?: readonly string[];
  /** Functions of the package that work without a document. Code with any other use of the namespace runs in a document. */
  withoutDocument?: readonly string[];
}

export type Catalogue = ReadonlyMap<string, PackageEntry>;

/** The nine packages of the specification (Code rules 3), and svc-ai. */
export const BUILT_IN_PACKAGES = builtIn as readonly PackageEntry[];

const PACKAGE_NAME = /^[a-z0-9][a-z0-9._-]{0,99}$/;
const NAMESPACE_NAME = /^[A-Za-z][A-Za-z0-9]{0,99}$/;
const SERVED_PATH = /^\/[A-Za-z0-9/._-]+$/;
const URL_MAX_CHARACTERS = 2048;

/**
 * Adds the operator's packages to the built-in ones. A later entry replaces an earlier entry with the same name.
 * @param extra parsed content of the operator's file: an array of {@link PackageEntry}
 * @throws Error with the path of the invalid entry
 */
export function createCatalogue(extra: unknown = []): Catalogue {
  if (!Array.isArray(extra)) throw new Error(`packages must be an array of entries (got ${describeValue(extra)})`);
  const catalogue = new Map(BUILT_IN_PACKAGES.map((entry) => [entry.name, entry]));
  for (const [index, value] of extra.entries()) {
    const entry = packageEntry(value, `packages[${index}]`);
    catalogue.set(entry.name, entry);
  }
  return catalogue;
}

function packageEntry(value: unknown, where: string): PackageEntry {
  if (!isObject(value)) throw new Error(`${where} must be an object (got ${describeValue(value)})`);
  const { name, namespace = null, path, url, standalone = false, mode = "document" } = value;
  // Before version 0.2.0, the name of `canBeTried` was `mayDoWithLess`.
  const {
    mayDoWithLess = false,
    canBeTried = mayDoWithLess,
    network = true,
    inDocument = [],
    withoutDocument = [],
  } = value;
  const expectField = (fits: boolean, field: string, expected: string, received: unknown) => {
    if (!fits) throw new Error(`${where}.${field} must be ${expected} (got ${describeValue(received)})`);
  };
  const matchesPattern = (text: unknown, pattern: RegExp): text is string =>
    typeof text === "string" && pattern.test(text);
  expectField(matchesPattern(name, PACKAGE_NAME), "name", "lower-case letters, digits, dots and dashes", name);
  expectField(
    namespace === null || matchesPattern(namespace, NAMESPACE_NAME),
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
  expectField(path === undefined || matchesPattern(path, SERVED_PATH), "path", "an absolute path", path);
  expectField(url === undefined || externalUrlFault(url) === null, "url", "an https URL", url);
  const areNames = (list: unknown) =>
    Array.isArray(list) && list.every((element) => matchesPattern(element, NAMESPACE_NAME));
  const isStandalone = typeof standalone === "boolean" || areNames(standalone);
  expectField(isStandalone, "standalone", "true, false or an array of function names", standalone);
  expectField(PACKAGE_MODES.includes(mode as PackageMode), "mode", `one of ${PACKAGE_MODES.join(", ")}`, mode);
  expectField(typeof canBeTried === "boolean", "canBeTried", "true or false", canBeTried);
  expectField(typeof network === "boolean", "network", "true or false", network);
  expectField(areNames(inDocument), "inDocument", "an array of function names", inDocument);
  expectField(areNames(withoutDocument), "withoutDocument", "an array of function names", withoutDocument);
  return { ...value, canBeTried } as unknown as PackageEntry;
}

/** Kind of a dependency: a file of the service, a package of the registry, or an external URL. */
export type Dependency =
  | { kind: "served"; asset: StoredAsset }
  /** `subpath` is "" or starts with a slash: the module of the package that is loaded. */
  | { kind: "npm"; name: string; range: string; subpath: string }
  | { kind: "address"; url: string };

/** Matches names that are reserved for packages of the service. They are never requested from a registry. */
const OWN_NAMES = /^svc-/i;
const SPEC_MAX_CHARACTERS = 300;

/** Returns the error of a dependency. `retryAfter` is the number of seconds after which a retry may succeed (contract, section 4). */
export function unresolvedError(dependency: string, reason: string, retryAfter?: number): ActionError {
  const details = retryAfter === undefined ? {} : { retryAfter };
  return new ActionError("DEPENDENCY_UNRESOLVED", `dependencies: ${describeValue(dependency)} ${reason}`, details);
}

/** @throws ActionError DEPENDENCY_UNRESOLVED for an invalid dependency */
export function readDependency(dependency: string, catalogue: Catalogue): Dependency {
  const entry = catalogue.get(dependency);
  if (entry?.path !== undefined) return { kind: "served", asset: { name: entry.name, path: entry.path } };
  if (entry && entry.url === undefined) throw notBuiltError(dependency);
  const address = entry?.url ?? dependency;
  if (/^[a-z][a-z0-9+.-]*:/i.test(address)) {
    const urlFault = externalUrlFault(address);
    if (urlFault !== null) throw unresolvedError(dependency, urlFault);
    return { kind: "address", url: new URL(address).href };
  }
  if (OWN_NAMES.test(dependency))
    throw unresolvedError(dependency, 'is not a package of this service; names with "svc-" are reserved for it');
  return { kind: "npm", ...npmSpecOf(dependency) };
}

/** Matches a name and a version, followed by the path of a module: `@noble/hashes@1/sha256`. */
const WITH_SUBPATH = /^((?:@[^/@]+\/)?[^/@]+(?:@[^/@]+)?)((?:\/[\w.-]+)+)$/;

/**
 * Parses a name with an optional version, range or tag, and an optional subpath. Rejects forms that an npm client would
 * resolve to a folder or another host.
 */
function npmSpecOf(dependency: string): { name: string; range: string; subpath: string } {
  const refusal = "is not a package of this service, an npm package such as lodash or @scope/name@^2, or an https URL";
  const isPlain = dependency.length <= SPEC_MAX_CHARACTERS && !/[\s\\%]/.test(dependency.trim());
  if (!isPlain || dependency !== dependency.trim()) throw unresolvedError(dependency, refusal);
  const [, spec = dependency, subpath = ""] = WITH_SUBPATH.exec(dependency) ?? [];
  const climbsUp = subpath.split("/").some((segment) => segment === "." || segment === "..");
  try {
    const { type, name, rawSpec } = npa(spec, "/");
    const isOfRegistry = type === "version" || type === "range" || type === "tag";
    if (isOfRegistry && name && !climbsUp)
      return { name, range: rawSpec === "*" && !spec.endsWith("@*") ? "" : rawSpec, subpath };
  } catch {
    // The spec is invalid for any registry.
  }
  throw unresolvedError(dependency, refusal);
}

/**
 * True if the name is valid for a package in a registry. Names in the dependencies of packages are untrusted, and become
 * part of a URL.
 */
export function isPackageName(name: string): boolean {
  try {
    const { type, name: read } = npa(name, "/");
    return (
      read === name && (type === "range" || type === "tag" || type === "version") && /^[\w@/.~-]{1,214}$/.test(name)
    );
  } catch {
    return false;
  }
}

/** Returns the error for a package that the specification has, but this service does not. */
export function notBuiltError(dependency: string): ActionError {
  const message = `dependencies: the package ${dependency} is not available yet`;
  return new ActionError("DEPENDENCY_UNRESOLVED", message);
}

/** Asset whose script is stored in the database. `sha256` is the hash of the script in hexadecimal. */
export type StoredScriptAsset = StoredAsset & { sha256: string };

export const isStoredScript = (asset: StoredAsset): asset is StoredScriptAsset => asset.sha256 !== undefined;

/** Path under which the service serves a stored script. */
export const storedPath = (sha256: string): string => `/client/kept/${sha256}.js`;

/** Function that adds the current URLs to stored assets. */
export type AddressAssets = (stored: readonly StoredAsset[]) => Asset[];

/**
 * Adds the current URLs to stored assets (specification, Action object, `assets`).
 * @param baseUrl URL of the service without a trailing slash
 */
export function addressedAssets(stored: readonly StoredAsset[], catalogue: Catalogue, baseUrl: string): Asset[] {
  return stored.map(({ name, path, url, sha256, ...kept }) => {
    // Older rows also contain a URL: an external URL, or a URL of the service, which may have changed since.
    const servedPath = sha256 !== undefined || url === undefined ? path : catalogue.get(name)?.path;
    return servedPath === undefined
      ? { name, url: url!, path, ...kept }
      : { name, url: baseUrl + servedPath, path: servedPath, ...kept };
  });
}

/** Returns the reason why a text is not a valid https URL, or null. */
function externalUrlFault(text: unknown): string | null {
  if (typeof text !== "string") return "is not a URL";
  if (text.length > URL_MAX_CHARACTERS) return `is longer than ${URL_MAX_CHARACTERS} characters`;
  // The URL parser drops tabs and line breaks and converts backslashes: the checked URL would differ from the given
  // text.
  if (/[\s\\]/.test(text) || !URL.canParse(text)) return "is not a valid URL";
  const url = new URL(text);
  if (url.protocol !== "https:") return "must be an https URL";
  return url.username !== "" || url.password !== "" ? "must not contain a user name or password" : null;
}

/** True if the code uses any members of `Svc` other than these. `members` are regular expressions. */
function usesOtherMembers(code: string, members: readonly string[]): boolean {
  return code.replaceAll(new RegExp(`\\bSvc\\.(?:${members.join("|")})\\b`, "g"), "").includes("Svc");
}

/** Functions of `Svc` that work without the client library and without a token: a small script provides them. */
const REQUEST_FUNCTIONS = ["App\\.V3\\.Actions\\.request", "App\\.Settings\\.get"];

/** True if the code uses one of REQUEST_FUNCTIONS. */
export const usesRequestFunctions = (code: string): boolean =>
  new RegExp(`\\bSvc\\.(?:${REQUEST_FUNCTIONS.join("|")})\\b`).test(code);

/** Returns the name by which code imports a dependency, without its version. */
export const importName = (dependency: string): string => dependency.replace(/(?<=[^/@])@[^/]*/, "");

/**
 * True if the code may need the client library. Uses of packages that work without the library are ignored. A search for
 * the word `Svc` is enough, because code has no other name for the library.
 */
export function needsLibrary(code: string, dependencies: readonly string[], catalogue: Catalogue): boolean {
  if (!code.includes("Svc")) return false;
  const entries = dependencies.flatMap((name) => catalogue.get(name) ?? []).filter(({ standalone }) => standalone);
  if (entries.length < dependencies.length) return true;
  const ownNames = entries.map(({ namespace, standalone }) =>
    Array.isArray(standalone) ? `${namespace}\\.(?:${standalone.join("|")})` : `${namespace}`,
  );
  return usesOtherMembers(code, [...REQUEST_FUNCTIONS, ...ownNames]);
}

/** Returns the mode for code that uses the client library. Code that uses members of `Svc` other than its packages needs a document. */
export function modeOfLibrary(code: string, dependencies: readonly string[], catalogue: Catalogue): PackageMode {
  const packageNames = dependencies.flatMap((name) => catalogue.get(name)?.namespace ?? []);
  const namespaces = [...packageNames, ...(usesRequestFunctions(code) ? REQUEST_FUNCTIONS : [])];
  return namespaces.length > 0 && !usesOtherMembers(code, namespaces) ? "network-isolate" : "document";
}

/** Mode and network that code needs because it uses a package. */
export type PackageNeed = Required<Pick<PackageEntry, "mode" | "network" | "canBeTried">>;

/** True if the code may use functions of the package other than these. */
function usesOtherFunctions(code: string, namespace: string | null, functions: readonly string[]): boolean {
  return usesOtherMembers(code, [`${namespace}\\.(?:${functions.join("|")})`, `(?!${namespace}\\b)\\w+`]);
}

/**
 * Returns the mode and network that the code needs because it uses a package.
 * @param isShared true if code that is not analyzed may also call the package
 */
export function needOfPackage(entry: PackageEntry, code: string, isShared = false): PackageNeed {
  const { namespace, mode = "document", network = mode !== "isolate", canBeTried = false } = entry;
  const { inDocument = [], withoutDocument = [] } = entry;
  const containsOneOf = (words: readonly string[]) =>
    words.length > 0 && new RegExp(`\\b(?:${words.join("|")})\\b`).test(code);
  const mayCallOthers =
    withoutDocument.length > 0 && (isShared || usesOtherFunctions(code, namespace, withoutDocument));
  const needsDocument = mayCallOthers || containsOneOf(inDocument);
  return needsDocument ? { mode: "document", network, canBeTried: false } : { mode, network, canBeTried };
}
