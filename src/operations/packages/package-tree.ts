/**
 * Collects a package and all its dependencies in the folder layout of node_modules. Includes a dependency only once if one version fits all
 * packages that need it.
 */
import { satisfies } from "semver";
import type { PackageArchive } from "../../engine/bundler.js";
import { describeValue } from "../../rules/describe-value.js";
import type { ChosenNpmVersion } from "../../rules/npm-choice.js";
import { createDependencyError, isPackageName } from "../../rules/packages.js";
import { PACKAGE_ARCHIVE_MAX_BYTES, type PackageRegistry, type RegistryRequest } from "./registry.js";

export const PACKAGES_PER_DEPENDENCY_MAX = 200;
/** Maximum total bytes of the archives that are downloaded for one dependency of an action. */
export const PACKAGE_ARCHIVES_MAX_BYTES = 48 * 1024 * 1024;
/** Maximum total bytes of the registry's documents (lists of versions) for one dependency, all of which are in memory. */
const DOCUMENTS_MAX_BYTES = 192 * 1024 * 1024;
const CONCURRENT_DOWNLOADS_MAX = 6;
const NPM_ALIAS_PATTERN = /^npm:(@?[^@]+)(?:@(.*))?$/;

interface PackageNode {
  /** Name of the package's folder in node_modules. */
  name: string;
  /** Name of the package in the registry. It differs from `name` if another package requires it under an alias (`npm:`). */
  registryName: string;
  choice: ChosenNpmVersion;
  folder: string;
}

const fitsRange = (version: string, range: string): boolean =>
  range === "" || range === "*" || satisfies(version, range, { loose: true });

/** Yields the folders in which a module in `folder` searches for a package, the nearest folder first (as Node.js does). */
function* searchedFolders(folder: string, name: string): Generator<string> {
  for (let at = folder; ; at = at.slice(0, at.lastIndexOf("/node_modules/"))) {
    yield `${at}/node_modules/${name}`;
    if (at === "") return;
  }
}

class PackageTree {
  readonly nodes = new Map<string, PackageNode>();
  private readonly documents = new Map<string, Promise<Uint8Array>>();
  private documentBytes = 0;

  constructor(
    private readonly registry: PackageRegistry,
    private readonly registryRequest: RegistryRequest,
  ) {}

  async choose(name: string, range: string): Promise<ChosenNpmVersion> {
    return this.registry.choose(this.registryRequest, name, await this.readDocument(name), range);
  }

  private readDocument(name: string): Promise<Uint8Array> {
    const knownDocument = this.documents.get(name);
    if (knownDocument) return knownDocument;
    if (!isPackageName(name)) {
      return Promise.reject(
        createDependencyError(
          this.registryRequest.dependency,
          `needs ${describeValue(name)}, which is not a valid name of a package`,
        ),
      );
    }
    const documentDownload = this.registry.downloadDocument(this.registryRequest, name).then((document) => {
      this.documentBytes += document.length;
      if (this.documentBytes <= DOCUMENTS_MAX_BYTES) return document;
      const sizeText = `${DOCUMENTS_MAX_BYTES / 2 ** 20} MB`;
      throw createDependencyError(
        this.registryRequest.dependency,
        `needs packages whose metadata in the registry exceeds the maximum of ${sizeText} in total`,
      );
    });
    this.documents.set(name, documentDownload);
    return documentDownload;
  }

  /** Requests the registry's documents for all dependencies of these packages, a few at a time, before `choose` needs them. */
  async prefetchDocuments(nodes: readonly PackageNode[]): Promise<void> {
    const names = nodes.flatMap(({ choice }) =>
      choice.dependencies.map(([name, range]) => NPM_ALIAS_PATTERN.exec(range)?.[1] ?? name),
    );
    const missingNames = [...new Set(names)].filter((name) => !this.documents.has(name));
    for (let at = 0; at < missingNames.length; at += CONCURRENT_DOWNLOADS_MAX) {
      // Ignores errors. `choose` throws the same error again if it needs the document.
      const downloads = missingNames
        .slice(at, at + CONCURRENT_DOWNLOADS_MAX)
        .map((name) => this.readDocument(name).catch(() => undefined));
      await Promise.all(downloads);
    }
  }

  addNode(node: PackageNode): PackageNode {
    if (this.nodes.size === PACKAGES_PER_DEPENDENCY_MAX)
      throw createDependencyError(
        this.registryRequest.dependency,
        `needs more than the maximum of ${PACKAGES_PER_DEPENDENCY_MAX} packages`,
      );
    this.nodes.set(node.folder, node);
    return node;
  }

  /** Adds those dependencies of a package that the tree does not contain yet. Returns the added packages. */
  async addDependencies({ choice, folder }: PackageNode): Promise<PackageNode[]> {
    const newNodes: PackageNode[] = [];
    const wantedChoices = choice.dependencies.map(([name, range]) => {
      const [, origin = name, of = ""] = NPM_ALIAS_PATTERN.exec(range) ?? [];
      return { name, origin, range: NPM_ALIAS_PATTERN.test(range) ? of : range };
    });
    const unplacedChoices = wantedChoices.filter(
      ({ name, origin, range }) => !this.containsPackage(folder, name, origin, range),
    );
    const chosenVersions = await Promise.all(unplacedChoices.map(({ origin, range }) => this.choose(origin, range)));
    for (const [at, { name, origin }] of unplacedChoices.entries()) {
      const top = `/node_modules/${name}`;
      const installPath = this.nodes.has(top) ? `${folder}/node_modules/${name}` : top;
      if (!this.nodes.has(installPath))
        newNodes.push(this.addNode({ name, registryName: origin, choice: chosenVersions[at]!, folder: installPath }));
    }
    return newNodes;
  }

  /** True if a module in `folder` finds the package in a version that fits `range`. */
  private containsPackage(folder: string, name: string, origin: string, range: string): boolean {
    for (const candidatePath of searchedFolders(folder, name)) {
      const existingNode = this.nodes.get(candidatePath);
      if (existingNode) return existingNode.registryName === origin && fitsRange(existingNode.choice.version, range);
    }
    return false;
  }
}

export interface PackageDownload {
  choice: ChosenNpmVersion;
  /** Downloads the archives of the package and all its dependencies. @throws DEPENDENCY_UNRESOLVED */
  downloadArchives: () => Promise<PackageArchive[]>;
}

/** Chooses the version of a package, but downloads no archives yet. @throws DEPENDENCY_UNRESOLVED */
export async function preparePackageDownload(
  registry: PackageRegistry,
  registryRequest: RegistryRequest,
  name: string,
  range: string,
): Promise<PackageDownload> {
  const tree = new PackageTree(registry, registryRequest);
  const choice = await tree.choose(name, range);

  async function downloadArchives(): Promise<PackageArchive[]> {
    let level = [tree.addNode({ name, registryName: name, choice, folder: `/node_modules/${name}` })];
    while (level.length > 0) {
      await tree.prefetchDocuments(level);
      const next: PackageNode[] = [];
      // Adds packages one after the other, because the folder of a package depends on the packages that are already in the tree.
      for (const node of level) next.push(...(await tree.addDependencies(node)));
      level = next;
    }
    const nodes = [...tree.nodes.values()];
    const packageArchives: PackageArchive[] = [];
    let bytes = 0;
    for (let at = 0; at < nodes.length; at += CONCURRENT_DOWNLOADS_MAX) {
      const fetchedNodes = nodes
        .slice(at, at + CONCURRENT_DOWNLOADS_MAX)
        .map(async ({ registryName, choice: { version }, folder, choice }) => {
          const archive = await registry.downloadArchive(
            registryRequest,
            registryName,
            choice,
            Math.min(PACKAGE_ARCHIVE_MAX_BYTES, PACKAGE_ARCHIVES_MAX_BYTES - bytes),
          );
          return { name: registryName, version, folder, archive };
        });
      for (const node of await Promise.all(fetchedNodes)) {
        bytes += node.archive.length;
        packageArchives.push(node);
      }
      if (bytes > PACKAGE_ARCHIVES_MAX_BYTES)
        throw createDependencyError(
          registryRequest.dependency,
          `is too large: its archive and those of its dependencies exceed the maximum of ${PACKAGE_ARCHIVES_MAX_BYTES / 2 ** 20} MB`,
        );
    }
    return packageArchives;
  }
  return { choice, downloadArchives };
}
