/** Reads the project folder of a Git commit: the files that a project can have, and the manifest (JSON) that they define. */
import { PackageError, ProjectError } from "../fault.js";
import { type GitObjectsByHash, type GitObjectType, readGitPack } from "./git-pack.js";
import { type ProjectFiles, type ProjectManifest, ProjectReader } from "./project-reader.js";

export interface RepositoryReadJob {
  /** Hash of the commit, or of a tag object that points to a commit. */
  commit: string;
  /** Folder of the project in the repository, such as `apps/shop`; "" for the root. */
  folder: string;
  /** Names of the files that can define an action, such as `action.ts`. */
  entryFileNames: readonly string[];
}

/** Folders of a project that the service reads. Outside of these folders, it reads only PROJECT_FILES. */
const PROJECT_FOLDERS: readonly string[] = ["actions", "data", "lib"];
const PROJECT_FILES: readonly string[] = [
  "alerts.json",
  "app.json",
  "secret-bindings.json",
  "settings.json",
  "tsconfig.json",
];
const FILES_MAX = 5_000;
/** Maximum folder entries that the reader visits, because a small pack can contain the same folder in many places. */
const ENTRIES_MAX = 20_000;
const DEPTH_MAX = 16;
const NESTED_TAGS_MAX = 5;
const MANIFEST_MAX_BYTES = 10 * 1024 * 1024;
const HASH_BYTES = 20;
const SUBMODULE_MODE = "160000";
const LINK_MODE = "120000";
const TREE_MODE = "40000";
const LFS_POINTER = "version https://git-lfs.github.com/spec/v1";

interface TreeEntry {
  mode: string;
  name: string;
  hash: string;
}

const createBrokenRepositoryFault = (reason: string) =>
  new PackageError(`the Git repository cannot be read: ${reason}`);

function getObjectContent(objects: GitObjectsByHash, hash: string, type: GitObjectType): Buffer {
  const object = objects.get(hash);
  if (object?.type !== type) throw createBrokenRepositoryFault(`the ${type} ${hash} is missing`);
  return object.content;
}

function readHeaderHash(content: Buffer, name: string): string {
  const line = content
    .toString("latin1")
    .split("\n", 20)
    .find((text) => text.startsWith(`${name} `));
  const hash = line?.slice(name.length + 1) ?? "";
  if (!/^[0-9a-f]{40}$/.test(hash)) throw createBrokenRepositoryFault(`an object has no ${name}`);
  return hash;
}

/** Returns the entries of a folder (a Git tree object). @throws PackageError */
function parseTreeEntries(content: Buffer): TreeEntry[] {
  const entries: TreeEntry[] = [];
  for (let at = 0; at < content.length; ) {
    const space = content.indexOf(0x20, at);
    const nameEnd = content.indexOf(0, at);
    if (space < 0 || nameEnd < space || nameEnd + 1 + HASH_BYTES > content.length)
      throw createBrokenRepositoryFault("a folder has a broken entry");
    const name = content.toString("utf8", space + 1, nameEnd);
    const isForbiddenName = name === "" || name === "." || name === ".." || /[/\\]/.test(name);
    if (isForbiddenName) throw createBrokenRepositoryFault("a folder has an entry with a name that is not allowed");
    const hash = content.toString("hex", nameEnd + 1, nameEnd + 1 + HASH_BYTES);
    entries.push({ mode: content.toString("latin1", at, space), name, hash });
    at = nameEnd + 1 + HASH_BYTES;
  }
  return entries;
}

function findRootTree(objects: GitObjectsByHash, commit: string): string {
  let hash = commit;
  for (let tags = 0; objects.get(hash)?.type === "tag" && tags < NESTED_TAGS_MAX; tags += 1)
    hash = readHeaderHash(objects.get(hash)!.content, "object");
  return readHeaderHash(getObjectContent(objects, hash, "commit"), "tree");
}

function findProjectFileHashes(objects: GitObjectsByHash, root: string, folder: string): Map<string, string> {
  const files = new Map<string, string>();
  let visitedEntries = 0;
  const readTree = (tree: string, parent: string, depth: number) => {
    if (depth > DEPTH_MAX) throw new ProjectError(`${parent} is nested deeper than ${DEPTH_MAX} folders`);
    const entries = parseTreeEntries(getObjectContent(objects, tree, "tree"));
    // The root folder does not count towards ENTRIES_MAX, because it may contain much that is not part of the project.
    if (parent !== "") visitedEntries += entries.length;
    if (visitedEntries > ENTRIES_MAX)
      throw new PackageError(`the project has more than ${ENTRIES_MAX} files and folders`);
    for (const { mode, name, hash } of entries) {
      const path = parent + name;
      if (
        parent === "" &&
        !(mode === TREE_MODE ? PROJECT_FOLDERS : PROJECT_FILES).includes(name) &&
        !isForbiddenLink(mode, name)
      )
        continue;
      if (mode === TREE_MODE) readTree(hash, `${path}/`, depth + 1);
      else files.set(path, requireRegularFile(path, mode, hash));
      if (files.size > FILES_MAX) throw new PackageError(`the project has more than ${FILES_MAX} files`);
    }
  };
  let tree = root;
  for (const segment of folder === "" ? [] : folder.split("/")) {
    const treeEntry = parseTreeEntries(getObjectContent(objects, tree, "tree")).find(({ name }) => name === segment);
    if (treeEntry?.mode !== TREE_MODE) throw new PackageError(`the repository has no folder ${folder}`);
    tree = treeEntry.hash;
  }
  readTree(tree, "", 0);
  return files;
}

/** True if one of PROJECT_FOLDERS or PROJECT_FILES is a symbolic link or a submodule. The service rejects such a project. */
const isForbiddenLink = (mode: string, name: string): boolean =>
  (mode === LINK_MODE || mode === SUBMODULE_MODE) && (PROJECT_FOLDERS.includes(name) || PROJECT_FILES.includes(name));

function requireRegularFile(path: string, mode: string, hash: string): string {
  if (mode === LINK_MODE) throw new ProjectError(`${path} is a symbolic link, which a project cannot have`);
  if (mode === SUBMODULE_MODE) throw new ProjectError(`${path} is a submodule, which a project cannot have`);
  return hash;
}

function readTextFile(objects: GitObjectsByHash, path: string, hash: string): string {
  const object = objects.get(hash);
  if (object?.type !== "blob") throw new ProjectError(`${path} is missing in the repository, or larger than 1 MB`);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(object.content);
  } catch {
    throw new ProjectError(`${path} is not UTF-8 text`);
  }
  if (text.startsWith(LFS_POINTER)) throw new ProjectError(`${path} is stored in Git LFS, which is not supported`);
  return text;
}

function createProjectFiles(objects: GitObjectsByHash, hashes: ReadonlyMap<string, string>): ProjectFiles {
  const folders = new Map<string, Set<string>>();
  for (const path of hashes.keys()) {
    const [top, second] = path.split("/");
    if (second !== undefined) folders.set(top!, (folders.get(top!) ?? new Set()).add(second));
  }
  return {
    read(path) {
      const hash = hashes.get(path);
      return hash === undefined ? null : readTextFile(objects, path, hash);
    },
    list: (folder) => [...(folders.get(folder) ?? [])].sort(),
  };
}

/** Returns the manifest (description of the app) of the project as JSON. @throws PackageError */
export async function readManifestFromGitPack(
  { commit, folder, entryFileNames }: RepositoryReadJob,
  pack: Buffer,
): Promise<string> {
  const objects = readGitPack(pack);
  const hashes = findProjectFileHashes(objects, findRootTree(objects, commit), folder);
  if (hashes.size === 0) {
    const folderText = folder === "" ? "the root of the repository" : folder;
    throw new PackageError(
      `${folderText} contains no project: none of these folders and files exists there: ${[...PROJECT_FOLDERS, ...PROJECT_FILES].join(", ")}`,
    );
  }
  const manifest: ProjectManifest = await new ProjectReader(
    createProjectFiles(objects, hashes),
    entryFileNames,
  ).readManifest();
  const document = JSON.stringify(manifest);
  if (Buffer.byteLength(document) > MANIFEST_MAX_BYTES)
    throw new PackageError(
      `all definitions of the project together are larger than ${MANIFEST_MAX_BYTES / 2 ** 20} MB`,
    );
  return document;
}
