/** The catalogue of dependency packages, and what a dependency resolves to. Serves and fetches nothing. */
import type { Asset, StoredAsset } from "../data/action-types.js";
import { ActionError } from "../errors.js";
import { described, isObject } from "./described.js";
import builtIn from "./packages.json" with { type: "json" };

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
  standalone?: true | readonly string[];
}

export type Catalogue = ReadonlyMap<string, PackageEntry>;

/** The nine packages of the specification (Code rules 3). */
export const BUILT_IN_PACKAGES = builtIn as readonly PackageEntry[];

const PACKAGE_NAME = /^[a-z0-9][a-z0-9._-]{0,99}$/;
const NAMESPACE = /^[A-Za-z][A-Za-z0-9]{0,99}$/;
const SERVED_PATH = /^\/[A-Za-z0-9/._-]+$/;
const URL_MAX_CHARACTERS = 2048;

/**
 * The nine packages and an operator's own, where a later entry replaces an earlier one of the same name.
 * @param extra the parsed content of the operator's file: an array of {@link PackageEntry}
 * @throws Error one that names the faulty entry
 */
export function createCatalogue(extra: unknown = []): Catalogue {
  if (!Array.isArray(extra)) throw new Error(`packages must be an array of entries; ${described(extra)} came`);
  const catalogue = new Map(BUILT_IN_PACKAGES.map((entry) => [entry.name, entry]));
  for (const [index, value] of extra.entries()) {
    const entry = packageEntry(value, `packages[${index}]`);
    catalogue.set(entry.name, entry);
  }
  return catalogue;
}

function packageEntry(value: unknown, where: string): PackageEntry {
  if (!isObject(value)) throw new Error(`${where} must be an object; ${described(value)} came`);
  const { name, namespace = null, path, url } = value;
  const expect = (fits: boolean, field: string, expected: string, came: unknown) => {
    if (!fits) throw new Error(`${where}.${field} must be ${expected}; ${described(came)} came`);
  };
  const matches = (text: unknown, pattern: RegExp): text is string => typeof text === "string" && pattern.test(text);
  expect(matches(name, PACKAGE_NAME), "name", "lower-case letters, digits, dots and dashes", name);
  expect(namespace === null || matches(namespace, NAMESPACE), "namespace", "a property name or null", namespace);
  expect((path === undefined) !== (url === undefined), "path", "given, or url, and not both", path);
  expect(path === undefined || matches(path, SERVED_PATH), "path", "an absolute path", path);
  expect(url === undefined || externalFault(url) === null, "url", "an https URL", url);
  return value as unknown as PackageEntry;
}

/**
 * What each dependency loads, in their order, each once.
 * @throws ActionError DEPENDENCIES_INVALID naming the unknown package or the refused URL, DEPENDENCY_UNRESOLVED naming the
 *   package that is not built yet
 */
export function resolveAssets(dependencies: readonly string[], catalogue: Catalogue): StoredAsset[] {
  return [...new Set(dependencies)].map((dependency) => {
    const entry = catalogue.get(dependency);
    if (entry?.path !== undefined) return { name: entry.name, path: entry.path };
    if (entry && entry.url === undefined) throw notBuilt(dependency);
    const url = entry?.url ?? dependency;
    const fault = externalFault(url);
    if (fault !== null)
      throw new ActionError("DEPENDENCIES_INVALID", `dependencies: ${described(dependency)} ${fault}`);
    return { name: dependency, url: new URL(url).href, path: new URL(url).pathname };
  });
}

/** The refusal of a package that has a name and nothing behind it. */
export function notBuilt(dependency: string): ActionError {
  const message = `dependencies: the package ${dependency} is not built yet and cannot be used`;
  return new ActionError("DEPENDENCY_UNRESOLVED", message);
}

/** Gives stored assets the addresses that they have now. */
export type Addressed = (stored: readonly StoredAsset[]) => Asset[];

/**
 * Stored assets with the addresses that they have now (specification, Action object, `assets`).
 * @param baseUrl of the service, without a closing slash
 */
export function addressedAssets(stored: readonly StoredAsset[], catalogue: Catalogue, baseUrl: string): Asset[] {
  return stored.map(({ name, path, url }) => {
    // A row of before holds the address that the service had then.
    const served = url === undefined ? path : catalogue.get(name)?.path;
    return served === undefined ? { name, url: url!, path } : { name, url: baseUrl + served, path: served };
  });
}

/** Why a dependency is no external https URL, or null. */
function externalFault(text: unknown): string | null {
  if (typeof text !== "string" || !/^[a-z][a-z0-9+.-]*:/i.test(text))
    return "is no package of the catalogue and no URL";
  if (text.length > URL_MAX_CHARACTERS) return `is longer than ${URL_MAX_CHARACTERS} characters`;
  // URL drops tabs and line breaks and turns backslashes around: what was checked would not be what was given.
  if (/[\s\\]/.test(text) || !URL.canParse(text)) return "is not a valid URL";
  const url = new URL(text);
  if (url.protocol !== "https:") return "must be an https URL";
  return url.username !== "" || url.password !== "" ? "must not hold a user name or password" : null;
}

/**
 * Whether code may use the client library, beside the namespaces of packages that do without it: by the word alone, for without it there
 * is no way to the library.
 */
export function needsLibrary(code: string, dependencies: readonly string[], catalogue: Catalogue): boolean {
  if (!code.includes("Svc")) return false;
  const entries = dependencies.flatMap((name) => catalogue.get(name) ?? []).filter(({ standalone }) => standalone);
  if (entries.length === 0 || entries.length < dependencies.length) return true;
  const own = entries.map(({ namespace, standalone }) =>
    standalone === true ? namespace : `${namespace}\\.(?:${standalone!.join("|")})`,
  );
  return code.replaceAll(new RegExp(`\\bSvc\\.(?:${own.join("|")})\\b`, "g"), "").includes("Svc");
}
