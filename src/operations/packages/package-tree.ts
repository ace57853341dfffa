/**
 * Collects a package and all packages that it needs, in the layout of node_modules. A package is included once if one
 * version fits all dependents.
 */
import { satisfies } from "semver";
import type { PackageArchive } from "../../engine/bundler.js";
import { describeValue } from "../../rules/described.js";
import type { VersionChoice } from "../../rules/npm-choice.js";
import { isPackageName, unresolvedError } from "../../rules/packages.js";
import { ARCHIVE_MAX_BYTES, type PackageRegistry, type RegistryRequest } from "./registry.js";

/** Maximum number of packages in a tree. A package with more dependencies is an application, not a library. */
export const PACKAGES_MAX = 200;
export const ARCHIVES_MAX_BYTES = 48 * 1024 * 1024;
/** Maximum bytes of the registry documents of all packages, which stay in memory until the last version is chosen. */
const DOCUMENTS_MAX_BYTES = 192 * 1024 * 1024;
const DOWNLOADS_AT_ONCE = 6;
const NPM_ALIAS = /^npm:(@?[^@]+)(?:@(.*))?$/;

interface Node {
  /** Name of the package's folder. */
  name: string;
  /** Name in the registry, which differs if the dependent uses an alias. */
  origin: string;
  choice: VersionChoice;
  folder: string;
}

const fitsRange = (version: string, range: string): boolean =>
  range === "" || range === "*" || satisfies(version, range, { loose: true });

/** Yields the folders in which a module of `folder` searches for a package, the nearest first. */
function* searchedFolders(folder: string, name: string): Generator<string> {
  for (let at = folder; ; at = at.slice(0, at.lastIndexOf("/node_modules/"))) {
    yield `${at}/node_modules/${name}`;
    if (at === "") return;
  }
}

class Tree {
  readonly nodes = new Map<string, Node>();
  private readonly documents = new Map<string, Promise<Uint8Array>>();
  private documentBytes = 0;

  constructor(
    private readonly registry: PackageRegistry,
    private readonly registryRequest: RegistryRequest,
  ) {}

  async choose(name: string, range: string): Promise<VersionChoice> {
    return this.registry.choose(this.registryRequest, name, await this.document(name), range);
  }

  private document(name: string): Promise<Uint8Array> {
    const knownDocument = this.documents.get(name);
    if (knownDocument) return knownDocument;
    if (!isPackageName(name)) {
      return Promise.reject(
        unresolvedError(this.registryRequest.dependency, `needs ${describeValue(name)}, which is no name of a package`),
      );
    }
    const requested = this.registry.document(this.registryRequest, name).then((document) => {
      this.documentBytes += document.length;
      if (this.documentBytes <= DOCUMENTS_MAX_BYTES) return document;
      const sizeText = `${DOCUMENTS_MAX_BYTES / 2 ** 20} MB`;
      throw unresolvedError(
        this.registryRequest.dependency,
        `needs packages whose metadata in the registry is larger than ${sizeText}`,
      );
    });
    this.documents.set(name, requested);
    return requested;
  }

  /** Requests the registry documents of several packages at once, so that later reads find them in the cache. */
  async askFor(nodes: readonly Node[]): Promise<void> {
    const names = nodes.flatMap(({ choice }) =>
      choice.needs.map(([name, range]) => NPM_ALIAS.exec(range)?.[1] ?? name),
    );
    const missingNames = [...new Set(names)].filter((name) => !this.documents.has(name));
    for (let at = 0; at < missingNames.length; at += DOWNLOADS_AT_ONCE) {
      // The package that needs this one reports the failure.
      const requested = missingNames
        .slice(at, at + DOWNLOADS_AT_ONCE)
        .map((name) => this.document(name).catch(() => undefined));
      await Promise.all(requested);
    }
  }

  add(node: Node): Node {
    if (this.nodes.size === PACKAGES_MAX)
      throw unresolvedError(this.registryRequest.dependency, `needs more than ${PACKAGES_MAX} packages`);
    this.nodes.set(node.folder, node);
    return node;
  }

  /** Adds the dependencies of a package to the tree. @returns the new ones */
  async grow({ choice, folder }: Node): Promise<Node[]> {
    const newNodes: Node[] = [];
    const wantedChoices = choice.needs.map(([name, range]) => {
      const [, origin = name, of = ""] = NPM_ALIAS.exec(range) ?? [];
      return { name, origin, range: NPM_ALIAS.test(range) ? of : range };
    });
    const unplacedChoices = wantedChoices.filter(({ name, origin, range }) => !this.has(folder, name, origin, range));
    const chosenVersions = await Promise.all(unplacedChoices.map(({ origin, range }) => this.choose(origin, range)));
    for (const [at, { name, origin }] of unplacedChoices.entries()) {
      const top = `/node_modules/${name}`;
      const installPath = this.nodes.has(top) ? `${folder}/node_modules/${name}` : top;
      if (!this.nodes.has(installPath))
        newNodes.push(this.add({ name, origin, choice: chosenVersions[at]!, folder: installPath }));
    }
    return newNodes;
  }

  /** True if a module in the folder would find this package. */
  private has(folder: string, name: string, origin: string, range: string): boolean {
    for (const candidatePath of searchedFolders(folder, name)) {
      const existingNode = this.nodes.get(candidatePath);
      if (existingNode) return existingNode.origin === origin && fitsRange(existingNode.choice.version, range);
    }
    return false;
  }
}

export interface GatheredPackages {
  choice: VersionChoice;
  archives: () => Promise<PackageArchive[]>;
}

/** Chooses the version of a package. Its dependencies are collected later. @throws DEPENDENCY_UNRESOLVED */
export async function gatherPackages(
  registry: PackageRegistry,
  registryRequest: RegistryRequest,
  name: string,
  range: string,
): Promise<GatheredPackages> {
  const tree = new Tree(registry, registryRequest);
  const choice = await tree.choose(name, range);

  async function archives(): Promise<PackageArchive[]> {
    let level = [tree.add({ name, origin: name, choice, folder: `/node_modules/${name}` })];
    while (level.length > 0) {
      await tree.askFor(level);
      const next: Node[] = [];
      // Packages are added one after the other, because each depends on the positions of the earlier ones.
      for (const node of level) next.push(...(await tree.grow(node)));
      level = next;
    }
    const nodes = [...tree.nodes.values()];
    const all: PackageArchive[] = [];
    let bytes = 0;
    for (let at = 0; at < nodes.length; at += DOWNLOADS_AT_ONCE) {
      const fetchedNodes = nodes
        .slice(at, at + DOWNLOADS_AT_ONCE)
        .map(async ({ origin, choice: { version }, folder, choice }) => {
          const archive = await registry.archive(
            registryRequest,
            origin,
            choice,
            Math.min(ARCHIVE_MAX_BYTES, ARCHIVES_MAX_BYTES - bytes),
          );
          return { name: origin, version, folder, archive };
        });
      for (const node of await Promise.all(fetchedNodes)) {
        bytes += node.archive.length;
        all.push(node);
      }
      if (bytes > ARCHIVES_MAX_BYTES)
        throw unresolvedError(
          registryRequest.dependency,
          `comes with all that it needs to more than ${ARCHIVES_MAX_BYTES / 2 ** 20} MB of archives`,
        );
    }
    return all;
  }
  return { choice, archives };
}
