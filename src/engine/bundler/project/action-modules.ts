/** Finds the files of an action in a project by its imports. Converts their paths to paths in the action's field `source`, and back. */
import { dirname, join } from "node:path/posix";
import { PackageError, ProjectError } from "../fault.js";
import { findImportedFile, findImportedFileByAlias, isRelativeSpecifier, parseTsconfig } from "../source-modules.js";

/** Returns the text of a file; null if the file does not exist. `path` is relative to the project's root. */
export type ReadProjectFile = (path: string) => string | null;

const IMPORT_SPECIFIER_PATTERN = /\b(?:from|import)\s*(?:\(\s*)?(?:"([^"\n]*)"|'([^'\n]*)')/g;
const TSCONFIG_FILE = "tsconfig.json";

const findSpecifiers = (text: string): string[] =>
  [...text.matchAll(IMPORT_SPECIFIER_PATTERN)].map(([, double, single]) => double ?? single!);

export class ModuleFinder {
  readonly #read: ReadProjectFile;
  /** The tsconfig.json in the action's folder or, if there is none, in the project's root. */
  readonly #tsconfig: { folder: string; text: string } | null;

  constructor(folder: string, read: ReadProjectFile) {
    this.#read = read;
    const folders = [folder, "."];
    const projectFolder = folders.find((folder) => read(join(folder, TSCONFIG_FILE)) !== null);
    this.#tsconfig =
      projectFolder === undefined ? null : { folder: projectFolder, text: read(join(projectFolder, TSCONFIG_FILE))! };
  }

  /** Path of the tsconfig.json; null if it does not exist, or has no settings that affect imports. */
  get tsconfig(): string | null {
    if (!this.#tsconfig || !/"(?:paths|baseUrl)"/.test(this.#tsconfig.text)) return null;
    return join(this.#tsconfig.folder, TSCONFIG_FILE);
  }

  /** Returns the path of the imported file; null if the import refers to a package, or if there is no such file. */
  resolve(importer: string, specifier: string): string | null {
    const has = (path: string) => this.#read(path) !== null;
    if (isRelativeSpecifier(specifier)) return findImportedFile(has, join(dirname(importer), specifier));
    if (!this.#tsconfig) return null;
    const { folder, text } = this.#tsconfig;
    const aliasedPath = findImportedFileByAlias((path) => has(join(folder, path)), text, specifier);
    return aliasedPath === null ? null : join(folder, aliasedPath);
  }

  /** Returns the texts of `entry` and of all its direct and indirect imports, by path. The service later reports missing files. */
  readImportedModules(entry: string): Map<string, string> {
    const texts = new Map<string, string>();
    const openPaths = [entry];
    for (let path = openPaths.pop(); path !== undefined; path = openPaths.pop()) {
      const text = texts.has(path) ? null : this.#read(path);
      if (text === null) continue;
      texts.set(path, text);
      for (const specifier of findSpecifiers(text)) {
        const resolved = this.resolve(path, specifier);
        if (resolved !== null) openPaths.push(resolved);
      }
    }
    return texts;
  }
}

/** True for a file in a folder whose files several actions can import. */
const isShared = (path: string): boolean => path.startsWith("lib/") || path.startsWith("actions/");

/** Returns the path of a file in the field `source` of the action in `folder`. @throws ProjectError if `source` cannot contain the file */
function toSourcePath(folder: string, path: string): string {
  if (path.startsWith(`${folder}/`)) return path.slice(folder.length + 1);
  if (isShared(path) || path === TSCONFIG_FILE) return path;
  throw new ProjectError(
    `${folder}: an action cannot import ${path}; it can import only files of its folder, of lib/ and of actions/`,
  );
}

const addFileName = (file: string, error: unknown): unknown =>
  error instanceof PackageError && !(error instanceof ProjectError)
    ? new ProjectError(`${file}: ${error.message}`)
    : error;

/** Returns the files for the field `source` of an action. @param folder for example `actions/hello` @throws ProjectError */
export function readActionSourceFiles(folder: string, entry: string, read: ReadProjectFile): Record<string, string> {
  const files = new Map<string, { path: string; text: string }>();
  try {
    const finder = new ModuleFinder(folder, read);
    const texts = finder.readImportedModules(entry);
    if (finder.tsconfig !== null) texts.set(finder.tsconfig, read(finder.tsconfig)!);
    for (const [path, text] of texts) {
      const name = toSourcePath(folder, path);
      const other = files.get(name);
      if (other)
        throw new ProjectError(
          `${entry} imports ${other.path} and ${path}, which would have the same path in the action; rename one of them`,
        );
      files.set(name, { path, text });
    }
  } catch (error) {
    throw addFileName(entry, error);
  }
  return Object.fromEntries([...files].map(([name, { text }]) => [name, text]));
}

/**
 * Returns the texts of a test file and of all files that it imports, by path. If a tsconfig.json affects imports, also returns a form of it
 * whose paths start at the project's root.
 * @param folder folder of the action
 * @throws ProjectError
 */
export function readActionTestFiles(folder: string, test: string, read: ReadProjectFile): Record<string, string> {
  try {
    const finder = new ModuleFinder(folder, read);
    const files = Object.fromEntries(finder.readImportedModules(test));
    if (finder.tsconfig === null) return files;
    const { baseUrl, paths } = parseTsconfig(read(finder.tsconfig)!);
    const base = join(dirname(finder.tsconfig), baseUrl);
    return {
      ...files,
      [TSCONFIG_FILE]: JSON.stringify({ compilerOptions: { baseUrl: base, paths: Object.fromEntries(paths) } }),
    };
  } catch (error) {
    throw addFileName(test, error);
  }
}

/** Returns the path in the project of each file in the field `source`. @param readProject reads files that already exist in the project */
export function mapSourceFilesToProjectPaths(
  folder: string,
  files: Readonly<Record<string, string>>,
  readProject: ReadProjectFile,
): Map<string, string> {
  const textOf = (name: string) => (Object.hasOwn(files, name) ? files[name]! : null);
  const isProjectConfig = textOf(TSCONFIG_FILE) !== null && readProject(TSCONFIG_FILE) === textOf(TSCONFIG_FILE);
  const read: ReadProjectFile = (path) => {
    if (path === TSCONFIG_FILE) return isProjectConfig ? textOf(TSCONFIG_FILE) : null;
    if (path === join(folder, TSCONFIG_FILE) && isProjectConfig) return null;
    if (path.startsWith(`${folder}/`)) return textOf(path.slice(folder.length + 1));
    return isShared(path) ? textOf(path) : null;
  };
  const entry = Object.keys(files).find((name) => name.startsWith("action.")) ?? "action.ts";
  const paths = new Map(Object.keys(files).map((name) => [name, join(folder, name)]));
  if (isProjectConfig) paths.set(TSCONFIG_FILE, TSCONFIG_FILE);
  for (const path of new ModuleFinder(folder, read).readImportedModules(join(folder, entry)).keys())
    paths.set(toSourcePath(folder, path), path);
  return paths;
}
