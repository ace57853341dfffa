/** Reads a project folder on disk (command line) or in a Git repository (service) as a manifest, a JSON description of an app. */
import { ProjectError } from "../fault.js";
import { readActionConfig, type UnvalidatedDefinition } from "./action-config.js";
import { removeConfigBlock } from "./action-file.js";
import { ModuleFinder, type ReadProjectFile, readActionSourceFiles } from "./action-modules.js";

const MANIFEST_VERSION = 1;

/** Access to the files of a project. Paths are relative to the project's root. */
export interface ProjectFiles {
  read: ReadProjectFile;
  /** Returns the sorted names of the files and folders in a folder; an empty list if there is no such folder. */
  list(folder: string): string[];
}

/** Definitions that a project folder contains. The service validates their fields. */
export interface ProjectManifest {
  version: number;
  app?: UnvalidatedDefinition;
  settings: UnvalidatedDefinition[];
  secretBindings: UnvalidatedDefinition[];
  dataSources: UnvalidatedDefinition[];
  actions?: UnvalidatedDefinition[];
  alerts: UnvalidatedDefinition[];
}

/** Returns the name of a definition (such as an alert) from its file name without extension, or from its folder name. */
export const decodeDefinitionName = (file: string): string => {
  try {
    return decodeURIComponent(file);
  } catch {
    return file;
  }
};

/** Reads the `config` of an action's file. @throws ProjectError if it is invalid */
export async function readConfigOfProjectFile(
  folder: string,
  file: string,
  read: ReadProjectFile,
): Promise<UnvalidatedDefinition> {
  const finder = new ModuleFinder(folder, read);
  return readActionConfig(file, finder, finder.readImportedModules(file));
}

const isObject = (value: unknown): value is UnvalidatedDefinition =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function describeType(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

export class ProjectReader {
  readonly #files: ProjectFiles;
  readonly #entries: readonly string[];

  /** @param entries names of the files that can define an action */
  constructor(files: ProjectFiles, entries: readonly string[]) {
    this.#files = files;
    this.#entries = entries;
  }

  #readJson(path: string): unknown {
    const text = this.#files.read(path);
    if (text === null) return undefined;
    try {
      return JSON.parse(text);
    } catch (error) {
      throw new ProjectError(`${path} is not JSON: ${(error as Error).message}`);
    }
  }

  #readObject(path: string): UnvalidatedDefinition | undefined {
    const value = this.#readJson(path);
    if (value === undefined || isObject(value)) return value;
    throw new ProjectError(`${path} must contain a JSON object (got ${describeType(value)})`);
  }

  /** Reads a file that contains a JSON array of objects. Returns an empty list if the file does not exist. */
  #readList(path: string): UnvalidatedDefinition[] {
    const value = this.#readJson(path) ?? (this.#files.read(path) === null ? [] : null);
    if (Array.isArray(value) && value.every(isObject)) return value;
    const received = Array.isArray(value) ? "an array with other items" : describeType(value);
    throw new ProjectError(`${path} must contain a JSON array of objects (got ${received})`);
  }

  listActionFolders(): string[] {
    return this.#files.list("actions").filter((folder) => this.findActionFile(folder) !== null);
  }

  /** Returns the path of the file that defines the action of a folder; null if the folder contains none. */
  findActionFile(folder: string): string | null {
    const paths = this.#entries.map((file) => `actions/${folder}/${file}`);
    return paths.find((path) => this.#files.read(path) !== null) ?? null;
  }

  async readConfig(folder: string): Promise<UnvalidatedDefinition> {
    const file = this.findActionFile(folder);
    return file === null ? {} : readConfigOfProjectFile(`actions/${folder}`, file, this.#files.read);
  }

  /** Reads an action with its source. @throws ProjectError if the folder contains no action */
  async readAction(folder: string): Promise<UnvalidatedDefinition> {
    const file = this.findActionFile(folder);
    if (file === null)
      throw new ProjectError(
        `the folder actions/${folder} must contain one of these files: ${this.#entries.join(", ")}`,
      );
    const item = { name: decodeDefinitionName(folder), ...(await this.readConfig(folder)) };
    const body = removeConfigBlock(this.#files.read(file)!);
    // JavaScript without imports and exports needs no build.
    if (file.endsWith(".js") && !/^[ \t]*(?:import|export)\b/m.test(body)) return { ...item, code: body, source: null };
    const language = /\.jsx?$/.test(file) ? "javascript" : "typescript";
    return { ...item, source: { language, files: readActionSourceFiles(`actions/${folder}`, file, this.#files.read) } };
  }

  async readManifest(): Promise<ProjectManifest> {
    const actions: UnvalidatedDefinition[] = [];
    for (const folder of this.listActionFolders()) actions.push(await this.readAction(folder));
    return { ...this.readDefinitions(), actions };
  }

  readDefinitions(): ProjectManifest {
    const dataSourceFiles = this.#files.list("data").filter((file) => file.endsWith(".json"));
    const app = this.#readObject("app.json");
    return {
      version: MANIFEST_VERSION,
      ...(app && { app }),
      settings: this.#readList("settings.json"),
      secretBindings: this.#readList("secret-bindings.json"),
      dataSources: dataSourceFiles.map((file) => ({
        name: decodeDefinitionName(file.slice(0, -".json".length)),
        ...this.#readObject(`data/${file}`),
      })),
      alerts: this.#readList("alerts.json"),
    };
  }
}
