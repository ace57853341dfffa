/**
 * Chooses the version of an npm package that matches a version range, from the document of the npm registry. A worker thread runs this
 * file, because the document is untrusted and may be large.
 */
import pickManifest from "npm-pick-manifest";
import { valid } from "semver";
import { isObject } from "./describe-value.js";

/** Chosen version of a package. `integrity` is the Subresource Integrity hash of the archive at the URL `tarball`. */
export interface ChosenNpmVersion {
  version: string;
  tarball: string;
  integrity: string;
  /** Names and version ranges of the required dependencies, including peer dependencies. */
  dependencies: [name: string, range: string][];
}

/** Chosen version, or a fault. `fault` follows the package's name in an error message, such as "has no version …". */
export type NpmVersionResult = ChosenNpmVersion | { fault: string };

/** Maximum number of dependencies of one kind that are read. All further ones are ignored. */
const DEPENDENCIES_MAX = 500;
const TEXT_MAX_CHARACTERS = 2_048;

const VERSION_PATTERN = /^[0-9A-Za-z.+-]{1,128}$/;

function listStringEntries(value: unknown): [string, string][] {
  if (!isObject(value)) return [];
  const entries = Object.entries(value).filter(([, range]) => typeof range === "string");
  return entries.slice(0, DEPENDENCIES_MAX) as [string, string][];
}

function readIntegrity({ integrity, shasum }: { integrity?: unknown; shasum?: unknown }): string | null {
  if (typeof integrity === "string" && integrity !== "") return integrity;
  if (typeof shasum !== "string" || !/^[0-9a-f]{40}$/.test(shasum)) return null;
  return `sha1-${Buffer.from(shasum, "hex").toString("base64")}`;
}

/** Returns the required dependencies. Leaves out optional ones: they usually contain native code, and packages work without them. */
function listRequiredDependencies(manifest: NonNullable<ReturnType<typeof pickManifest>>): [string, string][] {
  const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta } = manifest;
  const optionalNames = new Set(listStringEntries(optionalDependencies).map(([name]) => name));
  const peerMeta = isObject(peerDependenciesMeta) ? peerDependenciesMeta : {};
  const isOptionalPeer = (name: string) =>
    Object.hasOwn(peerMeta, name) && isObject(peerMeta[name]) && peerMeta[name]["optional"] === true;
  const peers = listStringEntries(peerDependencies).filter(([name]) => !isOptionalPeer(name));
  return [...listStringEntries(dependencies).filter(([name]) => !optionalNames.has(name)), ...peers];
}

export interface NpmVersionQuery {
  document: Uint8Array;
  /** Version, version range or tag that the chosen version must match. "" matches all versions and prefers the tag `latest`. */
  range: string;
  /** Time in ISO 8601. A range or tag matches only versions that were published before this time. null: versions of any age. */
  publishedBefore: string | null;
}

/** Chooses the version of a package. Ignores `publishedBefore` if the registry's document contains no publication times. */
export function chooseNpmVersion({ document, range, publishedBefore }: NpmVersionQuery): NpmVersionResult {
  let packument: unknown;
  try {
    packument = JSON.parse(new TextDecoder().decode(document));
  } catch {
    return { fault: "has a document in the registry that is not JSON" };
  }
  if (!isObject(packument) || !isObject(packument["versions"])) return { fault: "has no version in the registry" };
  let manifest: ReturnType<typeof pickManifest>;
  try {
    const isAgeChecked = publishedBefore !== null && isObject(packument["time"]) && valid(range) === null;
    manifest = pickManifest(packument, range, isAgeChecked ? { before: new Date(publishedBefore) } : {});
  } catch {
    manifest = null;
  }
  if (!isObject(manifest)) {
    const isTooNew =
      publishedBefore !== null && !("fault" in chooseNpmVersion({ document, range, publishedBefore: null }));
    if (isTooNew)
      return {
        fault: `has only versions of ${range || "latest"} that are younger than NPM_MIN_AGE_DAYS; name an exact version`,
      };
    return { fault: `has no version ${range || "latest"} in the registry` };
  }
  const { version, dist } = manifest as NonNullable<typeof manifest>;
  const tarball = isObject(dist) ? dist["tarball"] : undefined;
  const integrity = isObject(dist) ? readIntegrity(dist) : null;
  if (typeof version !== "string" || !VERSION_PATTERN.test(version))
    return { fault: "has an invalid version number in the registry" };
  if (typeof tarball !== "string" || tarball.length > TEXT_MAX_CHARACTERS || !URL.canParse(tarball))
    return { fault: `has no archive of ${version} in the registry` };
  if (integrity === null) return { fault: `has no integrity hash for the archive of ${version} in the registry` };
  return {
    version,
    tarball,
    integrity: integrity.slice(0, TEXT_MAX_CHARACTERS),
    dependencies: listRequiredDependencies(manifest as never),
  };
}
