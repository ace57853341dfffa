/** The catalogue of dependency packages, and what a dependency resolves to. Serves and fetches nothing. */
import npa from "npm-package-arg";
import type { Asset, StoredAsset } from "../data/action-types.js";
import { ActionError } from "../errors.js";
import { described, isObject } from "./described.js";
import builtIn from "./packages.json" with { type: "json" };

/** Modes in which a package may run on the server, the cheapest first (engine/browser/globals.ts). */
const PACKAGE_MODES = ["isolate", "network-isolate", "document"] as const;
export type PackageMode = (typeof PACKAGE_MODES)[number];

/**
 * One package. `namespace`: the property of `Svc` it defines, or null. Either `path` (served by this service, from its
 * base URL) or `url` (an https address elsewhere); neither: named by the specification and not built yet.
 */
export interface PackageEntry {
  name: string;
  namespace: string | null;
  path?: string;
  url?: string;
  /** It asks nothing of the client library, or these functions of it do not. */
  standalone?: boolean | readonly string[];
  /** The cheapest mode that has all that it names; default `document`. A package with a `url` always runs in a document. */
  mode?: PackageMode;
  /** false: it makes no requests. Default true, but for `isolate`. */
  network?: boolean;
  /** Many uses need only the language, so a run with it is tried in `isolate` first. */
  mayDoWithLess?: boolean;
  /** Code that contains one of these words runs in a document. */
  inDocument?: readonly string[];
  /** Only these functions of it need no document: code that uses its namespace in any other way runs in a document. */
  withoutDocument?: readonly string[];
}

export type Catalogue = ReadonlyMap<string, PackageEntry>;

/** The nine packages of the specification (Code rules 3), and svc-ai. */
export const BUILT_IN_PACKAGES = builtIn as readonly PackageEntry[];

const PACKAGE_NAME = /^[a-z0-9][a-z0-9._-]{0,99}$/;
const NAMESPACE = /^[A-Za-z][A-Za-z0-9]{0,99}$/;
const SERVED_PATH = /^\/[A-Za-z0-9/._-]+$/;
const URL_MAX_CHARACTERS = 2048;

/**
 * The built-in packages and an operator's own, where a later entry replaces an earlier one of the same name.
 * @param extra the parsed content of the operator's file: an array of {@link PackageEntry}
 * @throws Error one that names the faulty entry
 */
export function createCatalogue(extra: unknown = []): Catalogue {
  if (!Array.isArray(extra)) throw new Error(`packages must be an array of entries (got ${described(extra)})`);
  const catalogue = new Map(BUILT_IN_PACKAGES.map((entry) => [entry.name, entry]));
  for (const [index, value] of extra.entries()) {
    const entry = packageEntry(value, `packages[${index}]`);
    catalogue.set(entry.name, entry);
  }
  return catalogue;
}

function packageEntry(value: unknown, where: string): PackageEntry {
  if (!isObject(value)) throw new Error(`${where} must be an object (got ${described(value)})`);
  const { name, namespace = null, path, url, standalone = false, mode = "document" } = value;
  const { mayDoWithLess = false, network = true, inDocument = [], withoutDocument = [] } = value;
  const expect = (fits: boolean, field: string, expected: string, received: unknown) => {
    if (!fits) throw new Error(`${where}.${field} must be ${expected} (got ${described(received)})`);
  };
  const matches = (text: unknown, pattern: RegExp): text is string => typeof text === "string" && pattern.test(text);
  expect(matches(name, PACKAGE_NAME), "name", "lower-case letters, digits, dots and dashes", name);
  expect(namespace === null || matches(namespace, NAMESPACE), "namespace", "a property name or null", namespace);
  expect((path === undefined) !== (url === undefined), "path", "given, or url, and not both", path);
  expect(path === undefined || matches(path, SERVED_PATH), "path", "an absolute path", path);
  expect(url === undefined || externalFault(url) === null, "url", "an https URL", url);
  const areNames = (list: unknown) => Array.isArray(list) && list.every((one) => matches(one, NAMESPACE));
  const isStandalone = typeof standalone === "boolean" || areNames(standalone);
  expect(isStandalone, "standalone", "true, false or an array of function names", standalone);
  expect(PACKAGE_MODES.includes(mode as PackageMode), "mode", PACKAGE_MODES.join(", "), mode);
  expect(typeof mayDoWithLess === "boolean", "mayDoWithLess", "true or false", mayDoWithLess);
  expect(typeof network === "boolean", "network", "true or false", network);
  expect(areNames(inDocument), "inDocument", "an array of function names", inDocument);
  expect(areNames(withoutDocument), "withoutDocument", "an array of function names", withoutDocument);
  return value as unknown as PackageEntry;
}

/** What a dependency names: a file of the service, a package of the registry, or an address elsewhere. */
export type Dependency =
  | { kind: "served"; asset: StoredAsset }
  /** `subpath` is "" or begins with a slash: the module of the package that is loaded. */
  | { kind: "npm"; name: string; wanted: string; subpath: string }
  | { kind: "address"; url: string };

/** Names that are the service's own: no registry is asked for one. */
const OWN_NAMES = /^svc-/i;
const SPEC_MAX_CHARACTERS = 300;

/** The refusal of a dependency; with `retryAfter`, in seconds, where trying again helps (contract, section 4). */
export function unresolved(dependency: string, reason: string, retryAfter?: number): ActionError {
  const details = retryAfter === undefined ? {} : { retryAfter };
  return new ActionError("DEPENDENCY_UNRESOLVED", `dependencies: ${described(dependency)} ${reason}`, details);
}

/** @throws ActionError DEPENDENCY_UNRESOLVED for what names nothing that there could be */
export function readDependency(dependency: string, catalogue: Catalogue): Dependency {
  const entry = catalogue.get(dependency);
  if (entry?.path !== undefined) return { kind: "served", asset: { name: entry.name, path: entry.path } };
  if (entry && entry.url === undefined) throw notBuilt(dependency);
  const address = entry?.url ?? dependency;
  if (/^[a-z][a-z0-9+.-]*:/i.test(address)) {
    const fault = externalFault(address);
    if (fault !== null) throw unresolved(dependency, fault);
    return { kind: "address", url: new URL(address).href };
  }
  if (OWN_NAMES.test(dependency)) throw unresolved(dependency, "is no package of this service");
  return { kind: "npm", ...npmSpecOf(dependency) };
}

/** A name and a version, with the path of a module behind them: `@noble/hashes@1/sha256`. */
const WITH_SUBPATH = /^((?:@[^/@]+\/)?[^/@]+(?:@[^/@]+)?)((?:\/[\w.-]+)+)$/;

/** A name, perhaps with a version, a range or a tag and a subpath: nothing that leads a registry's client to a folder or another host. */
function npmSpecOf(dependency: string): { name: string; wanted: string; subpath: string } {
  const refusal =
    "is no package of the catalogue, no name of an npm package such as lodash or @scope/name@^2, and no https URL";
  const plain = dependency.length <= SPEC_MAX_CHARACTERS && !/[\s\\%]/.test(dependency.trim());
  if (!plain || dependency !== dependency.trim()) throw unresolved(dependency, refusal);
  const [, spec = dependency, subpath = ""] = WITH_SUBPATH.exec(dependency) ?? [];
  const climbs = subpath.split("/").some((segment) => segment === "." || segment === "..");
  try {
    const { type, name, rawSpec } = npa(spec, "/");
    const isOfRegistry = type === "version" || type === "range" || type === "tag";
    if (isOfRegistry && name && !climbs)
      return { name, wanted: rawSpec === "*" && !spec.endsWith("@*") ? "" : rawSpec, subpath };
  } catch {
    // What no registry may name.
  }
  throw unresolved(dependency, refusal);
}

/**
 * True if a registry can have a package of that name. Names that packages list as their dependencies are untrusted, and become part of a
 * URL.
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

/** The refusal of a package that has a name and nothing behind it. */
export function notBuilt(dependency: string): ActionError {
  const message = `dependencies: the package ${dependency} is not built yet and cannot be used`;
  return new ActionError("DEPENDENCY_UNRESOLVED", message);
}

/** What a script that is kept by its content adds to its asset. `sha256`: the content's, in hexadecimal. */
export type KeptAsset = StoredAsset & { sha256: string };

export const isKept = (asset: StoredAsset): asset is KeptAsset => asset.sha256 !== undefined;

/** Where the service serves a script that it keeps. */
export const keptPath = (sha256: string): string => `/client/kept/${sha256}.js`;

/** Gives stored assets the addresses that they have now. */
export type Addressed = (stored: readonly StoredAsset[]) => Asset[];

/**
 * Stored assets with the addresses that they have now (specification, Action object, `assets`).
 * @param baseUrl of the service, without a closing slash
 */
export function addressedAssets(stored: readonly StoredAsset[], catalogue: Catalogue, baseUrl: string): Asset[] {
  return stored.map(({ name, path, url, sha256, ...kept }) => {
    // An older row has the address that the service had then, or one elsewhere.
    const served = sha256 !== undefined || url === undefined ? path : catalogue.get(name)?.path;
    return served === undefined
      ? { name, url: url!, path, ...kept }
      : { name, url: baseUrl + served, path: served, ...kept };
  });
}

/** Why a dependency is no external https URL, or null. */
function externalFault(text: unknown): string | null {
  if (typeof text !== "string") return "is no URL";
  if (text.length > URL_MAX_CHARACTERS) return `is longer than ${URL_MAX_CHARACTERS} characters`;
  // URL drops tabs and line breaks and turns backslashes around: what was checked would not be what was given.
  if (/[\s\\]/.test(text) || !URL.canParse(text)) return "is not a valid URL";
  const url = new URL(text);
  if (url.protocol !== "https:") return "must be an https URL";
  return url.username !== "" || url.password !== "" ? "must not hold a user name or password" : null;
}

/** Whether code says `Svc` in any other way than before one of the members, which are regular expressions. */
function saysMore(code: string, members: readonly string[]): boolean {
  return code.replaceAll(new RegExp(`\\bSvc\\.(?:${members.join("|")})\\b`, "g"), "").includes("Svc");
}

/** Functions of `Svc` that a small script provides, without a token. */
const REQUEST_FUNCTIONS = ["App\\.V3\\.Actions\\.request", "App\\.Settings\\.get"];

/** True if the code names one of the functions that send requests or read settings. */
export const namesRequests = (code: string): boolean =>
  new RegExp(`\\bSvc\\.(?:${REQUEST_FUNCTIONS.join("|")})\\b`).test(code);

/** Name by which code imports a dependency: without its version. */
export const importName = (dependency: string): string => dependency.replace(/(?<=[^/@])@[^/]*/, "");

/**
 * True if code may use the client library, beside the namespaces of packages that work without it. Searching for the word is enough,
 * because code reaches the library only by it.
 */
export function needsLibrary(code: string, dependencies: readonly string[], catalogue: Catalogue): boolean {
  if (!code.includes("Svc")) return false;
  const entries = dependencies.flatMap((name) => catalogue.get(name) ?? []).filter(({ standalone }) => standalone);
  if (entries.length < dependencies.length) return true;
  const own = entries.map(({ namespace, standalone }) =>
    Array.isArray(standalone) ? `${namespace}\\.(?:${standalone.join("|")})` : `${namespace}`,
  );
  return saysMore(code, [...REQUEST_FUNCTIONS, ...own]);
}

/** Mode of the client library for code that uses it: code that uses more of `Svc` than its packages runs in a document. */
export function modeOfLibrary(code: string, dependencies: readonly string[], catalogue: Catalogue): PackageMode {
  const ofPackages = dependencies.flatMap((name) => catalogue.get(name)?.namespace ?? []);
  const namespaces = [...ofPackages, ...(namesRequests(code) ? REQUEST_FUNCTIONS : [])];
  return namespaces.length > 0 && !saysMore(code, namespaces) ? "network-isolate" : "document";
}

/** Needs of a package for one piece of code. */
export type PackageNeed = Required<Pick<PackageEntry, "mode" | "network" | "mayDoWithLess">>;

/** Whether code says a package's namespace, or `Svc` itself, but before one of these functions of it. */
function saysOthers(code: string, namespace: string | null, functions: readonly string[]): boolean {
  return saysMore(code, [`${namespace}\\.(?:${functions.join("|")})`, `(?!${namespace}\\b)\\w+`]);
}

/**
 * Returns the needs of a package for this code.
 * @param isShared true if other code, which is not analyzed, may call it too
 */
export function needOfPackage(entry: PackageEntry, code: string, isShared = false): PackageNeed {
  const { namespace, mode = "document", network = mode !== "isolate", mayDoWithLess = false } = entry;
  const { inDocument = [], withoutDocument = [] } = entry;
  const saysOneOf = (words: readonly string[]) =>
    words.length > 0 && new RegExp(`\\b(?:${words.join("|")})\\b`).test(code);
  const mayCallOthers = withoutDocument.length > 0 && (isShared || saysOthers(code, namespace, withoutDocument));
  const needsDocument = mayCallOthers || saysOneOf(inDocument);
  return needsDocument ? { mode: "document", network, mayDoWithLess: false } : { mode, network, mayDoWithLess };
}
