/** Reads a project folder as a manifest. The command line passes files on disk, the service passes files of a Git repository. */
import { ProjectFault } from "../fault.js";
import { type Item, readActionConfig } from "./action-config.js";
import { codeWithoutConfig } from "./action-file.js";
import { ModuleFinder, type ReadFile, readSourceFiles } from "./action-modules.js";

const MANIFEST_VERSION = 1;

/** Access to the files of a project, by their paths from its root. */
export interface ProjectFiles {
  read: ReadFile;
  /** Returns the sorted names of files and folders in a folder; empty if there is no such folder. */
  list(folder: string): string[];
}

/** Definitions that a project folder contains. The service validates their fields. */
export interface ProjectManifest {
  version: number;
  app?: Item;
  settings: Item[];
  secretBindings: Item[];
  dataSources: Item[];
  actions?: Item[];
  alerts: Item[];
}

/** Returns the name of the item that a file or folder defines. `file` is its name without extension. */
export const nameOfFile = (file: string): string => {
  try {
    return decodeURIComponent(file);
  } catch {
    return file;
  }
};

/** Reads the `config` of an action's file. @throws ProjectFault if it is invalid */
export async function readConfigOf(folder: string, file: string, read: ReadFile): Promise<Item> {
  const finder = new ModuleFinder(folder, read);
  return readActionConfig(file, finder, finder.follow(file));
}

export class ProjectReader {
  readonly #files: ProjectFiles;
  readonly #entries: readonly string[];

  /** Creates a reader of a project. @param entries names of the files that can define an action */
  constructor(files: ProjectFiles, entries: readonly string[]) {
    this.#files = files;
    this.#entries = entries;
  }

  #readJson<T>(path: string): T | undefined {
    const text = this.#files.read(path);
    if (text === null) return undefined;
    try {
      return JSON.parse(text) as T;
    } catch (error) {
      throw new ProjectFault(`${path} is not JSON: ${(error as Error).message}`);
    }
  }

  /** Returns the names of the folders in `actions/` that contain an action. */
  listActionFolders(): string[] {
    return this.#files.list("actions").filter((folder) => this.findActionFile(folder) !== null);
  }

  /** Returns the path of the file that defines the action of a folder; null if the folder contains none. */
  findActionFile(folder: string): string | null {
    const paths = this.#entries.map((file) => `actions/${folder}/${file}`);
    return paths.find((path) => this.#files.read(path) !== null) ?? null;
  }

  async readConfig(folder: string): Promise<Item> {
    const file = this.findActionFile(folder);
    return file === null ? {} : readConfigOf(`actions/${folder}`, file, this.#files.read);
  }

  /** Reads an action with its source. @throws ProjectFault if the folder contains no action */
  async readAction(folder: string): Promise<Item> {
    const file = this.findActionFile(folder);
    if (file === null) throw new ProjectFault(`actions/${folder} has none of ${this.#entries.join(", ")}`);
    const item = { name: nameOfFile(folder), ...(await this.readConfig(folder)) };
    const body = codeWithoutConfig(this.#files.read(file)!);
    // JavaScript without imports and exports needs no building.
    if (file.endsWith(".js") && !/^[ \t]*(?:import|export)\b/m.test(body)) return { ...item, code: body, source: null };
    const language = /\.jsx?$/.test(file) ? "javascript" : "typescript";
    return { ...item, source: { language, files: readSourceFiles(`actions/${folder}`, file, this.#files.read) } };
  }

  async readManifest(): Promise<ProjectManifest> {
    const actions: Item[] = [];
    for (const folder of this.listActionFolders()) actions.push(await this.readAction(folder));
    return { ...this.readDefinitions(), actions };
  }

  /** Returns the manifest of the project without its actions. */
  readDefinitions(): ProjectManifest {
    const sources = this.#files.list("data").filter((file) => file.endsWith(".json"));
    const app = this.#readJson<Item>("app.json");
    return {
      version: MANIFEST_VERSION,
      ...(app && { app }),
      settings: this.#readJson<Item[]>("settings.json") ?? [],
      secretBindings: this.#readJson<Item[]>("secret-bindings.json") ?? [],
      dataSources: sources.map((file) => ({
        name: nameOfFile(file.slice(0, -".json".length)),
        ...this.#readJson<Item>(`data/${file}`),
      })),
      alerts: this.#readJson<Item[]>("alerts.json") ?? [],
    };
  }
}
