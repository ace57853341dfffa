/**
 * Reads the files of a project folder as a manifest (a document with all definitions of an app), and writes a manifest
 * as files into the folder.
 */
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { getCodeLineNumbers, joinConfigAndCode, removeConfigBlock } from "../../engine/bundler/project/action-file.js";
import {
  mapSourceFilesToProjectPaths,
  type ReadProjectFile,
  readActionTestFiles,
} from "../../engine/bundler/project/action-modules.js";
import {
  decodeDefinitionName,
  ProjectReader,
  readConfigOfProjectFile,
} from "../../engine/bundler/project/project-reader.js";
import { ENTRY_POINT_FILE_NAMES, isValidSourcePath } from "../../rules/action-source.js";
import type { ServerAndApp } from "./config.js";
import { CliError, createUsageError } from "./failure.js";
import { compareManifests, getActionSource, type Item, type Manifest, type ManifestActionSource } from "./manifest.js";
import {
  encodeFileName,
  findNamesEqualIgnoringCase,
  isInvalidOnWindows,
  isPortablePath,
  resolveInProject,
} from "./project-path.js";
import { readTextFile } from "./text-file.js";

const ENTRY_FILE_NAMES = Object.values(ENTRY_POINT_FILE_NAMES).flat();
const TYPES_FILE = "svc.d.ts";
const STATE_FOLDER = ".svc";

/** The app's manifest at the last pull or push, and its entity tag. Comparing it with the folder and the server shows later changes. */
export interface LastSyncState {
  tag: string;
  manifest: Manifest;
}

const formatJson = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

/**
 * Returns the name of the file that stores the `LastSyncState` of one app. A project folder can have several of these files, such as
 * one for each stage.
 */
const getLastSyncFileName = ({ url, app }: ServerAndApp): string =>
  `base-${app}-${createHash("sha256").update(url).digest("hex").slice(0, 8)}.json`;

const isPartOfItem = (fields: Item, item: Item): boolean =>
  Object.entries(fields).every(([name, value]) => isDeepStrictEqual(value, item[name]));

function groupFilesByName(namesWithFiles: readonly [name: string, file: string][]): Map<string, string[]> {
  const files = new Map<string, string[]>();
  for (const [name, file] of namesWithFiles) files.set(name, [...(files.get(name) ?? []), file]);
  return files;
}

/** Returns the name of the file or folder for an item. Prefers one that already contains the item, so that the item is not stored twice. */
function chooseFileOfItem(name: string, files: ReadonlyMap<string, readonly string[]>): string {
  const defaultFile = encodeFileName(name);
  const existingFiles = files.get(name) ?? [];
  return existingFiles.includes(defaultFile) ? defaultFile : (existingFiles[0] ?? defaultFile);
}

/** Rejects two names that differ only in case, because Windows and macOS treat them as one file. @throws CliError with both names */
function rejectFilesEqualIgnoringCase(folder: string, files: readonly string[]): void {
  if (process.platform !== "win32" && process.platform !== "darwin") return;
  const equalNames = findNamesEqualIgnoringCase(files);
  if (equalNames === null) return;
  const conflictingFiles = equalNames.map((file) => `${folder}/${file}`).join(" and ");
  throw new CliError(
    `this computer cannot store ${conflictingFiles} together, because the names differ only in upper and lower case; rename one file on the server`,
  );
}

export class Project {
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  #resolvePath(...parts: string[]): string {
    return join(this.root, ...parts);
  }

  #readJson<T>(...parts: string[]): T | undefined {
    const path = this.#resolvePath(...parts);
    if (!existsSync(path)) return undefined;
    const text = readTextFile(path, parts.join("/"));
    try {
      return JSON.parse(text) as T;
    } catch (error) {
      throw new CliError(`${parts.join("/")} is not JSON: ${(error as Error).message}`);
    }
  }

  #listNames(...parts: string[]): string[] {
    const path = this.#resolvePath(...parts);
    return existsSync(path) ? readdirSync(path).sort() : [];
  }

  #writeIfChanged(text: string, ...parts: string[]): void {
    const path = this.#resolvePath(...parts);
    if (existsSync(path) && readFileSync(path, "utf8") === text) return;
    mkdirSync(dirname(path), { recursive: true });
    // Writes a temporary file and renames it, so that a crash leaves no partly written file.
    const temporaryPath = join(dirname(path), `.${process.pid}.tmp`);
    writeFileSync(temporaryPath, text);
    renameSync(temporaryPath, path);
  }

  readLastSync(target: ServerAndApp): LastSyncState | null {
    return this.#readJson<LastSyncState>(STATE_FOLDER, getLastSyncFileName(target)) ?? null;
  }

  saveLastSync(target: ServerAndApp, state: LastSyncState): void {
    this.#writeIfChanged("*\n", STATE_FOLDER, ".gitignore");
    this.#writeIfChanged(formatJson(state), STATE_FOLDER, getLastSyncFileName(target));
  }

  removeLastSync(target: ServerAndApp): void {
    rmSync(this.#resolvePath(STATE_FOLDER, getLastSyncFileName(target)), { force: true });
  }

  listActionFolders(): string[] {
    return this.#reader.listActionFolders();
  }

  findActionFile(folder: string): string | null {
    return this.#reader.findActionFile(folder);
  }

  readText(file: string): string {
    return readTextFile(this.#resolvePath(file), file);
  }

  /** Returns the text of a project file; null if there is none. @throws CliError for a symbolic link to a file outside of the project */
  readonly #readFile: ReadProjectFile = (path) => {
    if (!isPortablePath(path)) return null;
    const file = this.#resolvePath(path);
    if (statSync(file, { throwIfNoEntry: false })?.isFile() !== true) return null;
    const storedPath = resolveInProject(realpathSync.native(this.root), realpathSync.native(file));
    if (storedPath === null)
      throw new CliError(
        `${path} is outside of the project, or a symbolic link to a file outside of the project; copy the file into the project`,
      );
    // On Windows and macOS, `path` also finds a file whose name differs in case. The service finds only the exact name, so this function
    // returns null for the other file.
    const isOtherCase = storedPath !== path && storedPath.toLowerCase() === path.toLowerCase();
    return isOtherCase && !this.#hasExactPath(path) ? null : readTextFile(file, path);
  };

  /** True if a file or link with exactly this path exists, including upper and lower case. */
  #hasExactPath(path: string): boolean {
    const segments = path.split("/");
    return segments.every((segment, index) =>
      readdirSync(this.#resolvePath(...segments.slice(0, index))).includes(segment),
    );
  }

  /** Lists the items in a folder of the project, such as actions/. @throws CliError for an item whose name Windows cannot store */
  #listItems(folder: string): string[] {
    const files = this.#listNames(folder);
    for (const file of files.filter((name) => !isPortablePath(name))) {
      const extension = folder === "data" ? ".json" : "";
      const isItem =
        folder === "data"
          ? file.endsWith(extension)
          : ENTRY_FILE_NAMES.some((entry) => existsSync(this.#resolvePath(folder, file, entry)));
      if (!isItem) continue;
      const name = encodeFileName(decodeDefinitionName(extension === "" ? file : file.slice(0, -extension.length)));
      throw new CliError(`Windows cannot store the name ${folder}/${file}; rename it to ${name}${extension}`);
    }
    return files;
  }

  readonly #reader = new ProjectReader(
    { read: this.#readFile, list: (folder) => this.#listItems(folder) },
    ENTRY_FILE_NAMES,
  );

  /** Returns the folders in actions/ by action name. The name is `name` in the action's config, otherwise the name of the folder. */
  async #groupActionFolders(): Promise<Map<string, string[]>> {
    const namesWithFolders = this.listActionFolders().map(async (folder): Promise<[string, string]> => {
      const config: Item = await this.readConfig(folder).catch(() => ({}));
      return [String(config["name"] ?? decodeDefinitionName(folder)), folder];
    });
    return groupFilesByName(await Promise.all(namesWithFolders));
  }

  /** Lists the actions of the project with their names and folders, in the order of the folders. */
  async listActions(): Promise<{ name: string; folder: string }[]> {
    const actionsByName = await this.#groupActionFolders();
    const actions = [...actionsByName].flatMap(([name, folders]) => folders.map((folder) => ({ name, folder })));
    return actions.sort((a, b) => (a.folder < b.folder ? -1 : 1));
  }

  /** Returns the names of the files in data/, without extension, by the name of the data source. */
  #groupDataFiles(): Map<string, string[]> {
    const files = this.#listItems("data").filter((file) => file.endsWith(".json"));
    return groupFilesByName(
      files.map((file) => {
        const baseName = file.slice(0, -".json".length);
        return [String(this.#readJson<Item>("data", file)?.["name"] ?? decodeDefinitionName(baseName)), baseName];
      }),
    );
  }

  readTest(folder: string): { test: string; files: Record<string, string> } | null {
    const names = ["action.test.ts", "action.test.js"].map((file) => `actions/${folder}/${file}`);
    const test = names.find((file) => existsSync(this.#resolvePath(file)));
    return test === undefined ? null : { test, files: readActionTestFiles(`actions/${folder}`, test, this.#readFile) };
  }

  readConfig(folder: string): Promise<Item> {
    return this.#reader.readConfig(folder);
  }

  async readAction(folder: string): Promise<Item> {
    if (this.findActionFile(folder) === null)
      throw createUsageError(
        `the folder actions/${folder} must contain one of these files: ${ENTRY_FILE_NAMES.join(", ")}`,
      );
    return this.#reader.readAction(folder);
  }

  /**
   * Converts the positions in a stack trace. They refer to the action's code. The result refers to the action's file, which also contains
   * the config block. Returns `stack` unchanged if the file has other code than `code`.
   */
  async mapStackToFiles(name: string, code: string, stack: string): Promise<string> {
    const folder = chooseFileOfItem(name, await this.#groupActionFolders());
    const file = this.findActionFile(folder);
    if (file === null) return stack;
    const text = this.readText(file);
    if (removeConfigBlock(text).trimEnd() !== code.trimEnd()) return stack;
    const lines = getCodeLineNumbers(text);
    const parts = stack.split(`${name}.js:`);
    const mappedParts = parts.slice(1).map((rest, index) => {
      // Another file's name can end with the action's name, such as `my-hello.js` for the action `hello`. Leaves positions in such a file
      // unchanged.
      if (!"( \n".includes(parts[index]!.slice(-1))) return `${name}.js:${rest}`;
      const line = Number.parseInt(rest, 10);
      const sourceLine = lines[line - 1];
      return sourceLine === undefined
        ? `${name}.js:${rest}`
        : `${file}:${sourceLine}${rest.slice(String(line).length)}`;
    });
    return [parts[0], ...mappedParts].join("");
  }

  readManifest(): Promise<Manifest> {
    return this.#reader.readManifest();
  }

  readDefinitions(): Manifest {
    return this.#reader.readDefinitions();
  }

  async #writeAction(item: Item, folder: string): Promise<void> {
    const { name, code, source: _, assets: __, ...fields } = item;
    const config = decodeDefinitionName(folder) === name ? fields : { name, ...fields };
    // An action in the folder that cannot be read is replaced by the server's action.
    const local = this.findActionFile(folder) === null ? null : await this.readAction(folder).catch(() => null);
    const isSame = (other: Item) =>
      compareManifests({ version: 1, actions: [item] }, { version: 1, actions: [other] }, false).length === 0;
    if (local && isSame(local)) return;
    const source = getActionSource(item);
    if (source) return this.#writeSource(`actions/${folder}`, config, source);
    for (const file of ENTRY_FILE_NAMES)
      if (file !== "action.js") rmSync(this.#resolvePath("actions", folder, file), { force: true });
    this.#writeIfChanged(joinConfigAndCode(config, String(code ?? "")), "actions", folder, "action.js");
  }

  /** Writes an action's source files. The main file keeps its config block if all fields in the block have the values of `config`. */
  async #writeSource(folder: string, config: Item, { files }: ManifestActionSource): Promise<void> {
    const invalidPath = Object.keys(files).find((name) => !isValidSourcePath(name));
    if (invalidPath !== undefined)
      throw new CliError(
        `the server sent a file for ${folder} whose path is not valid or leads out of this folder (got ${invalidPath}); rename the file on the server`,
      );
    const unwritableFile = process.platform === "win32" ? Object.keys(files).find(isInvalidOnWindows) : undefined;
    if (unwritableFile !== undefined)
      throw new CliError(`Windows cannot store a file with the name ${unwritableFile}; rename the file on the server`);
    const paths = mapSourceFilesToProjectPaths(folder, files, this.#readFile);
    for (const [name, path] of paths) {
      const text = files[name]!;
      if (!ENTRY_FILE_NAMES.includes(name)) {
        this.#writeIfChanged(text, path);
        continue;
      }
      const readSentFile: ReadProjectFile = (file) => {
        const fileEntry = [...paths].find(([, other]) => other === file);
        return fileEntry ? files[fileEntry[0]]! : null;
      };
      // Writes a new config block if the server's main file has none, an unreadable one, or one with other values than `config`.
      const sentConfig = await readConfigOfProjectFile(folder, path, readSentFile).catch(() => null);
      const isBlockUpToDate = sentConfig && Object.keys(sentConfig).length > 0 && isPartOfItem(sentConfig, config);
      this.#writeIfChanged(isBlockUpToDate ? text : joinConfigAndCode(config, removeConfigBlock(text)), path);
      for (const other of ENTRY_FILE_NAMES)
        if (other !== name) rmSync(this.#resolvePath(folder, other), { force: true });
    }
  }

  async writeManifest(manifest: Manifest): Promise<void> {
    const { actions = [], dataSources = [] } = manifest;
    const actionsByName = await this.#groupActionFolders();
    const dataByName = this.#groupDataFiles();
    const folders = actions.map(({ name }) => chooseFileOfItem(String(name), actionsByName));
    const dataFiles = dataSources.map(({ name }) => `${chooseFileOfItem(String(name), dataByName)}.json`);
    rejectFilesEqualIgnoringCase("actions", folders);
    rejectFilesEqualIgnoringCase("data", dataFiles);
    for (const [index, action] of actions.entries()) await this.#writeAction(action, folders[index]!);
    for (const [index, { name, ...fields }] of dataSources.entries()) {
      this.#writeIfChanged(formatJson({ name, ...fields }), "data", dataFiles[index]!);
    }
    this.#writeIfChanged(formatJson(manifest.settings ?? []), "settings.json");
    this.#writeIfChanged(formatJson(manifest.alerts ?? []), "alerts.json");
    const bindings = manifest.secretBindings ?? [];
    if (bindings.length > 0 || existsSync(this.#resolvePath("secret-bindings.json")))
      this.#writeIfChanged(formatJson(bindings), "secret-bindings.json");
    if (manifest.app && Object.keys(manifest.app).length > 0)
      this.#writeIfChanged(formatJson(manifest.app), "app.json");
  }

  /** Returns the config of each action; {} for a config that cannot be read. */
  async readConfigs(): Promise<Item[]> {
    return Promise.all(this.listActionFolders().map((folder) => this.readConfig(folder).catch(() => ({}))));
  }

  hasFile(path: string): boolean {
    return this.#readFile(path) !== null;
  }

  writeTypes(text: string): void {
    this.#writeIfChanged(text, TYPES_FILE);
  }

  async removeItem(kind: string, name: string): Promise<void> {
    if (kind === "action") {
      for (const folder of (await this.#groupActionFolders()).get(name) ?? [])
        rmSync(this.#resolvePath("actions", folder), { recursive: true, force: true });
    }
    if (kind === "data source") {
      for (const file of this.#groupDataFiles().get(name) ?? [])
        rmSync(this.#resolvePath("data", `${file}.json`), { force: true });
    }
  }
}
