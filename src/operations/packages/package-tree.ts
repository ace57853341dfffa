/** Collects a package and all packages that it needs, each once if one version fits all, laid out as in node_modules. Unpacks nothing. */
import { satisfies } from "semver";
import type { PackageArchive } from "../../engine/bundler.js";
import { described } from "../../rules/described.js";
import type { Choice } from "../../rules/npm-choice.js";
import { isPackageName, unresolved } from "../../rules/packages.js";
import { ARCHIVE_MAX_BYTES, type Asking, type Registry } from "./registry.js";

/** A package with more dependencies is not a library. */
export const PACKAGES_MAX = 200;
export const ARCHIVES_MAX_BYTES = 48 * 1024 * 1024;
/** Registry documents of all packages, held until the last version is chosen. */
const DOCUMENTS_MAX_BYTES = 192 * 1024 * 1024;
const AT_ONCE = 6;
const NPM_ALIAS = /^npm:(@?[^@]+)(?:@(.*))?$/;

interface Node {
  /** Name of its folder. */
  name: string;
  /** Name in the registry; differs if the dependent uses an alias. */
  origin: string;
  choice: Choice;
  folder: string;
}

const fits = (version: string, range: string): boolean =>
  range === "" || range === "*" || satisfies(version, range, { loose: true });

/** The folders that a module of `folder` searches, nearest first. */
function* lookedAt(folder: string, name: string): Generator<string> {
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
    private readonly registry: Registry,
    private readonly asking: Asking,
  ) {}

  async choose(name: string, wanted: string): Promise<Choice> {
    return this.registry.choose(this.asking, name, await this.document(name), wanted);
  }

  private document(name: string): Promise<Uint8Array> {
    const known = this.documents.get(name);
    if (known) return known;
    if (!isPackageName(name)) {
      return Promise.reject(
        unresolved(this.asking.dependency, `needs ${described(name)}, which is no name of a package`),
      );
    }
    const requested = this.registry.document(this.asking, name).then((document) => {
      this.documentBytes += document.length;
      if (this.documentBytes <= DOCUMENTS_MAX_BYTES) return document;
      const most = `${DOCUMENTS_MAX_BYTES / 2 ** 20} MB`;
      throw unresolved(this.asking.dependency, `needs packages of which the registry tells more than ${most}`);
    });
    this.documents.set(name, requested);
    return requested;
  }

  /** Requests the registry documents of several packages concurrently; later readers find them cached. */
  async askFor(nodes: readonly Node[]): Promise<void> {
    const names = nodes.flatMap(({ choice }) =>
      choice.needs.map(([name, range]) => NPM_ALIAS.exec(range)?.[1] ?? name),
    );
    const missing = [...new Set(names)].filter((name) => !this.documents.has(name));
    for (let at = 0; at < missing.length; at += AT_ONCE) {
      // The package that needs it reports the failure.
      const requested = missing.slice(at, at + AT_ONCE).map((name) => this.document(name).catch(() => undefined));
      await Promise.all(requested);
    }
  }

  add(node: Node): Node {
    if (this.nodes.size === PACKAGES_MAX)
      throw unresolved(this.asking.dependency, `needs more than ${PACKAGES_MAX} packages`);
    this.nodes.set(node.folder, node);
    return node;
  }

  /** Adds the dependencies of a package to the tree. @returns the new ones */
  async grow({ choice, folder }: Node): Promise<Node[]> {
    const grown: Node[] = [];
    const wanted = choice.needs.map(([name, range]) => {
      const [, origin = name, of = ""] = NPM_ALIAS.exec(range) ?? [];
      return { name, origin, range: NPM_ALIAS.test(range) ? of : range };
    });
    const missing = wanted.filter(({ name, origin, range }) => !this.has(folder, name, origin, range));
    const choices = await Promise.all(missing.map(({ origin, range }) => this.choose(origin, range)));
    for (const [at, { name, origin }] of missing.entries()) {
      const top = `/node_modules/${name}`;
      const place = this.nodes.has(top) ? `${folder}/node_modules/${name}` : top;
      if (!this.nodes.has(place)) grown.push(this.add({ name, origin, choice: choices[at]!, folder: place }));
    }
    return grown;
  }

  /** True if a module of the folder would find that package. */
  private has(folder: string, name: string, origin: string, range: string): boolean {
    for (const place of lookedAt(folder, name)) {
      const found = this.nodes.get(place);
      if (found) return found.origin === origin && fits(found.choice.version, range);
    }
    return false;
  }
}

export interface Gathered {
  choice: Choice;
  archives: () => Promise<PackageArchive[]>;
}

/** Chooses the version of a package. Its dependencies are collected later. @throws DEPENDENCY_UNRESOLVED */
export async function gather(registry: Registry, asking: Asking, name: string, wanted: string): Promise<Gathered> {
  const tree = new Tree(registry, asking);
  const choice = await tree.choose(name, wanted);

  async function archives(): Promise<PackageArchive[]> {
    let level = [tree.add({ name, origin: name, choice, folder: `/node_modules/${name}` })];
    while (level.length > 0) {
      await tree.askFor(level);
      const next: Node[] = [];
      // One after the other: each depends on the positions of the earlier ones.
      for (const node of level) next.push(...(await tree.grow(node)));
      level = next;
    }
    const nodes = [...tree.nodes.values()];
    const all: PackageArchive[] = [];
    let bytes = 0;
    for (let at = 0; at < nodes.length; at += AT_ONCE) {
      const fetched = nodes
        .slice(at, at + AT_ONCE)
        .map(async ({ origin, choice: { version }, folder, choice: one }) => {
          const archive = await registry.archive(
            asking,
            origin,
            one,
            Math.min(ARCHIVE_MAX_BYTES, ARCHIVES_MAX_BYTES - bytes),
          );
          return { name: origin, version, folder, archive };
        });
      for (const one of await Promise.all(fetched)) {
        bytes += one.archive.length;
        all.push(one);
      }
      if (bytes > ARCHIVES_MAX_BYTES)
        throw unresolved(
          asking.dependency,
          `comes with all that it needs to more than ${ARCHIVES_MAX_BYTES / 2 ** 20} MB of archives`,
        );
    }
    return all;
  }
  return { choice, archives };
}
