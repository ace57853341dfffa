/**
 * Chooses a package's version for a range from its registry document, and lists the dependencies of that version. Such
 * documents are untrusted and may be large, so they are read on a thread.
 */
import pickManifest from "npm-pick-manifest";
import { valid } from "semver";
import { isObject } from "./described.js";

/** A version of a package. `integrity` is the Subresource Integrity of the archive at `tarball`. */
export interface VersionChoice {
  version: string;
  tarball: string;
  integrity: string;
  /** Names and version ranges of the package's dependencies, including peers. */
  needs: [name: string, range: string][];
}

/** Chosen version, or the reason why no version fits, which completes a message that begins with the package's name. */
export type VersionResult = VersionChoice | { fault: string };

/** Maximum number of dependencies of one package, more than any ordinary package has. */
const NEEDS_MAX = 500;
const TEXT_MAX_CHARACTERS = 2_048;

const VERSION = /^[0-9A-Za-z.+-]{1,128}$/;

function entriesOf(value: unknown): [string, string][] {
  if (!isObject(value)) return [];
  const entries = Object.entries(value).filter(([, range]) => typeof range === "string");
  return entries.slice(0, NEEDS_MAX) as [string, string][];
}

function integrityOf({ integrity, shasum }: { integrity?: unknown; shasum?: unknown }): string | null {
  if (typeof integrity === "string" && integrity !== "") return integrity;
  if (typeof shasum !== "string" || !/^[0-9a-f]{40}$/.test(shasum)) return null;
  return `sha1-${Buffer.from(shasum, "hex").toString("base64")}`;
}

/** Returns the required dependencies. Optional ones contain native code, and a package must work without them. */
function needsOf(manifest: NonNullable<ReturnType<typeof pickManifest>>): [string, string][] {
  const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta } = manifest;
  const optionalNames = new Set(entriesOf(optionalDependencies).map(([name]) => name));
  const peerMeta = isObject(peerDependenciesMeta) ? peerDependenciesMeta : {};
  const isOptionalPeer = (name: string) =>
    Object.hasOwn(peerMeta, name) && isObject(peerMeta[name]) && peerMeta[name]["optional"] === true;
  const peers = entriesOf(peerDependencies).filter(([name]) => !isOptionalPeer(name));
  return [...entriesOf(dependencies).filter(([name]) => !optionalNames.has(name)), ...peers];
}

export interface VersionQuery {
  /** The registry document, JSON. */
  document: Uint8Array;
  /** Version, range or tag that is requested; "" stands for the newest version. */
  range: string;
  /** Versions that were published later are not chosen for a range or a tag; ISO 8601, null without a minimum age. */
  publishedBefore: string | null;
}

/** Chooses a version. If the registry states no publication times, any version can be chosen. */
export function chooseVersion({ document, range, publishedBefore }: VersionQuery): VersionResult {
  let packument: unknown;
  try {
    packument = JSON.parse(new TextDecoder().decode(document));
  } catch {
    return { fault: "is described by the registry in no JSON" };
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
    const isYoung = publishedBefore !== null && !("fault" in chooseVersion({ document, range, publishedBefore: null }));
    if (isYoung) return { fault: `has only versions of ${range || "latest"} that are younger than NPM_MIN_AGE_DAYS` };
    return { fault: `has no version ${range || "latest"} in the registry` };
  }
  const { version, dist } = manifest as NonNullable<typeof manifest>;
  const tarball = isObject(dist) ? dist["tarball"] : undefined;
  const integrity = isObject(dist) ? integrityOf(dist) : null;
  if (typeof version !== "string" || !VERSION.test(version)) return { fault: "has a version that is none" };
  if (typeof tarball !== "string" || tarball.length > TEXT_MAX_CHARACTERS || !URL.canParse(tarball))
    return { fault: `has no archive of ${version} in the registry` };
  if (integrity === null) return { fault: `has an archive of ${version} without an integrity` };
  return { version, tarball, integrity: integrity.slice(0, TEXT_MAX_CHARACTERS), needs: needsOf(manifest as never) };
}
