/** A project folder and its manifest: reads the folder into one, and writes one into the folder. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { buildActionCode, joinFile, readActionConfig, splitFile } from "./action-file.js";
import { CliError, wrongUse } from "./failure.js";
import { differences, type Item, type Manifest } from "./manifest.js";

const MANIFEST_VERSION = 1;
const STATE_FOLDER = ".svc";

/** The server's manifest at the last pull or push, from which both sides' changes are told. */
export interface BaseState {
  tag: string;
  manifest: Manifest;
}

const pretty = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

/** A name as the name of one file on every system. */
const fileNameOf = (name: string): string => encodeURIComponent(name).replaceAll(".", "%2E").replaceAll("*", "%2A");

const nameOfFile = (file: string): string => {
  try {
    return decodeURIComponent(file);
  } catch {
    return file;
  }
};

export class Project {
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  #path(...parts: string[]): string {
    return join(this.root, ...parts);
  }

  #readJson<T>(...parts: string[]): T | undefined {
    const path = this.#path(...parts);
    if (!existsSync(path)) return undefined;
    try {
      return JSON.parse(readFileSync(path, "utf8")) as T;
    } catch (error) {
      throw new CliError(`${parts.join("/")} is not JSON: ${(error as Error).message}`);
    }
  }

  #list(...parts: string[]): string[] {
    const path = this.#path(...parts);
    return existsSync(path) ? readdirSync(path).sort() : [];
  }

  #writeIfChanged(text: string, ...parts: string[]): void {
    const path = this.#path(...parts);
    if (existsSync(path) && readFileSync(path, "utf8") === text) return;
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }

  base(): BaseState | null {
    return this.#readJson<BaseState>(STATE_FOLDER, "base.json") ?? null;
  }

  saveBase(state: BaseState): void {
    this.#writeIfChanged("*\n", STATE_FOLDER, ".gitignore");
    this.#writeIfChanged(pretty(state), STATE_FOLDER, "base.json");
  }

  /** Names of the folders below actions/ that hold an action. */
  actionFolders(): string[] {
    return this.#list("actions").filter((folder) => this.actionFile(folder) !== null);
  }

  /** Path of an action's file from the root; null if the folder has none. */
  actionFile(folder: string): string | null {
    const files = ["action.ts", "action.js"].map((file) => `actions/${folder}/${file}`);
    return files.find((file) => existsSync(this.#path(file))) ?? null;
  }

  readText(file: string): string {
    return readFileSync(this.#path(file), "utf8");
  }

  async readAction(folder: string): Promise<Item> {
    const file = this.actionFile(folder);
    if (file === null) throw wrongUse(`actions/${folder} has no action.ts and no action.js`);
    const text = this.readText(file);
    const config = await readActionConfig(this.root, file, text);
    return { name: nameOfFile(folder), ...config, code: await buildActionCode(this.root, file, text) };
  }

  async readManifest(): Promise<Manifest> {
    const actions: Item[] = [];
    for (const folder of this.actionFolders()) actions.push(await this.readAction(folder));
    const sources = this.#list("data").filter((file) => file.endsWith(".json"));
    const app = this.#readJson<Item>("app.json");
    return {
      version: MANIFEST_VERSION,
      ...(app && { app }),
      settings: this.#readJson<Item[]>("settings.json") ?? [],
      dataSources: sources.map((file) => ({
        name: nameOfFile(file.slice(0, -".json".length)),
        ...this.#readJson<Item>("data", file),
      })),
      actions,
      alerts: this.#readJson<Item[]>("alerts.json") ?? [],
    };
  }

  async #writeAction(item: Item): Promise<void> {
    const { name, code, assets: _assets, ...config } = item;
    const folder = fileNameOf(String(name));
    const file = this.actionFile(folder) ?? `actions/${folder}/action.js`;
    const known = existsSync(this.#path(file)) ? this.readText(file) : null;
    if (known !== null) {
      const local = await this.readAction(folder).catch(() => null);
      if (local && differences({ version: 1, actions: [item] }, { version: 1, actions: [local] }, false).length === 0)
        return;
      // Only the fields changed: the author's own form of the code stays.
      const isSameCode = local?.["code"] === code;
      if (isSameCode) return this.#writeIfChanged(joinFile(config, splitFile(known).body), file);
    }
    this.#writeIfChanged(joinFile(config, String(code ?? "")), file);
  }

  /** Writes the server's manifest into the folder; what the folder has more stays. */
  async write(manifest: Manifest): Promise<void> {
    for (const action of manifest.actions ?? []) await this.#writeAction(action);
    for (const { name, ...fields } of manifest.dataSources ?? []) {
      this.#writeIfChanged(pretty({ name, ...fields }), "data", `${fileNameOf(String(name))}.json`);
    }
    this.#writeIfChanged(pretty(manifest.settings ?? []), "settings.json");
    this.#writeIfChanged(pretty(manifest.alerts ?? []), "alerts.json");
    if (manifest.app && Object.keys(manifest.app).length > 0) this.#writeIfChanged(pretty(manifest.app), "app.json");
  }

  /** Removes what the server no longer has. */
  remove(kind: string, name: string): void {
    if (kind === "action") rmSync(this.#path("actions", fileNameOf(name)), { recursive: true, force: true });
    if (kind === "data source") rmSync(this.#path("data", `${fileNameOf(name)}.json`), { force: true });
  }
}
