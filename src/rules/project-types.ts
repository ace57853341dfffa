/** Builds svc.d.ts: the TypeScript declarations for an app's code, with its settings, data sources, packages and the global `Svc`. */
import { getImportName } from "./packages.js";

type DefinitionItem = Record<string, unknown>;

export interface ProjectTypeDefinitions {
  settings?: DefinitionItem[] | undefined;
  dataSources?: DefinitionItem[] | undefined;
  secretBindings?: DefinitionItem[] | undefined;
}

/** TypeScript declaration files of each package; null if a package has none. A file imports another one by its index in the array. */
export type PackageDeclarations = ReadonlyMap<string, readonly string[] | null>;

interface DependentDefinition {
  dependencies?: unknown;
  assets?: { name: string; integrity: string }[] | undefined;
}

const HASH_PREFIX = "sha256-";

/**
 * Returns the integrity hash of each package's script, by the name under which code imports the package. null: the service has not stored a
 * script yet.
 */
export function collectPackageHashes(actions: readonly DependentDefinition[]): Map<string, string | null> {
  const hashByName = new Map<string, string | null>();
  for (const { dependencies, assets = [] } of actions) {
    for (const dependency of Array.isArray(dependencies) ? dependencies : []) {
      if (typeof dependency !== "string" || URL.canParse(dependency)) continue;
      const { integrity } = assets.find(({ name }) => name === dependency) ?? {};
      const integrityHash = integrity?.startsWith(HASH_PREFIX) ? integrity : null;
      hashByName.set(getImportName(dependency), integrityHash ?? hashByName.get(getImportName(dependency)) ?? null);
    }
  }
  return new Map([...hashByName].sort(([a], [b]) => (a < b ? -1 : 1)));
}

const FILE_HEAD = `/** Types of this app. \`svc dev\` and \`svc check\` write this file; changes to it are lost. */`;

/** Maximum total length of package declarations: long ones slow down type checks. Packages beyond this length get the type `any`. */
export const PACKAGE_TYPES_MAX_CHARACTERS = 6 * 1024 * 1024;

const MODULE_DECLARATIONS = `declare module "svc" {
  import type { LimitData, Trigger } from "svc/client";

  export interface ActionConfig extends LimitData {
    description?: string | null;
    active?: boolean;
    environment?: "server" | "client" | "any";
    triggers?: (Trigger | { trigger: "log"; where: { type: string; dataSource?: SvcDataSourceName | null } })[];
    dependencies?: string[];
    integrationOrigins?: string[];
    access?: "everyone" | "signedIn" | "editors" | { user: object };
    frequency?: string | null;
    timezone?: string | null;
  }
  export function defineAction(config: ActionConfig): ActionConfig;

  /** The parameter of \`execute\`. */
  export interface ActionContext<Payload = Record<string, any>> {
    payload: Payload;
    /** Private and protected settings, in server actions. */
    settings: SvcSettings;
  }
}

declare module "svc/test" {
  export function test(name: string, run: () => unknown): void;
  export function equal(actual: unknown, expected: unknown): void;
  export function ok(value: unknown, message?: string): void;
  export function rejects(promiseOrFunction: Promise<unknown> | (() => unknown), message?: string | RegExp): Promise<void>;
  export const mock: {
    fetch(answer: (request: Request) => Response | object | Promise<Response | object>): void;
    time(date: Date | string | number): Promise<void>;
  };
}
`;

const GLOBAL_DECLARATIONS = `type SvcDataSourceName = keyof SvcDataSources & string;

/** A data source whose columns are known. */
type SvcConnection<Row> = Omit<import("svc/client").DataSourceConnection, "find" | "findOne" | "findById" | "insert" | "update" | "append" | "replaceWith"> & {
  find(query: import("svc/client").EntryQuery & { includePagination: true }): Promise<{
    entries: import("svc/client").Entry<Row>[];
    pagination: { total: number; limit: number; offset: number };
  }>;
  find(query?: import("svc/client").EntryQuery): Promise<import("svc/client").Entry<Row>[]>;
  findOne(query?: import("svc/client").EntryQuery): Promise<import("svc/client").Entry<Row> | undefined>;
  findById(id: number): Promise<import("svc/client").Entry<Row>>;
  insert(data: Partial<Row>): Promise<import("svc/client").Entry<Row>>;
  update(id: number, data: Partial<Row>, options?: { ifUpdatedAt?: string }): Promise<import("svc/client").Entry<Row>>;
  append(rows: Partial<Row>[]): Promise<{ inserted: number }>;
  replaceWith(rows: Partial<Row>[]): Promise<{ inserted: number }>;
};

type SvcTypedDataSources = Omit<import("svc/client").DataSources, "connectByName"> & {
  connectByName<Name extends SvcDataSourceName>(name: Name): Promise<SvcConnection<SvcDataSources[Name]>>;
};
`;

const NAMESPACE_NAMES = [
  "Session",
  "Media",
  "Communicate",
  "Notifications",
  "AI",
  "CSV",
  "Encryption",
  "Barcode",
  "Audio",
];

/** Declarations of "svc/client" that accept all code. They replace the server's declarations if these are not available. */
const CLIENT_FALLBACK_DECLARATIONS = `export interface LimitData { [field: string]: any }
export type Trigger = any;
export type Client = any;
export type EntryQuery = any;
export type Entry<Row> = any;
export type DataSources = any;
export type DataSourceConnection = any;`;

const TEXT_MODULES = ["html", "txt", "md", "csv", "sql", "css", "svg"]
  .map((extension) => `declare module "*.${extension}" {\n  const text: string;\n  export default text;\n}`)
  .join("\n");

const createPropertyLine = (name: unknown, type: string): string => `  ${JSON.stringify(name)}: ${type};`;
const createOptionalLine = (name: unknown, type: string): string => `  ${JSON.stringify(name)}?: ${type};`;

/** Returns the keys of settings whose value code does not receive, because they have a sealed secret binding. */
function collectSealedKeys(...definitions: ProjectTypeDefinitions[]): Set<unknown> {
  const bindings = definitions.flatMap(({ secretBindings }) => secretBindings ?? []);
  return new Set(bindings.filter(({ sealed }) => sealed === true).map(({ key }) => key));
}

const getSettingType = ({ value }: DefinitionItem): string =>
  value !== undefined && value !== null && typeof value !== "object" ? typeof value : "any";

function createTypeBlock(head: string, lines: readonly string[]): string {
  return `${head} {\n${lines.join("\n")}\n}\n`;
}

/** Merges two lists of items. A local item replaces the server's item with the same value in the field `key`. */
const mergeItems = (
  server: readonly DefinitionItem[] = [],
  local: readonly DefinitionItem[] = [],
  key: string,
): DefinitionItem[] => [...new Map([...server, ...local].map((item) => [item[key], item])).values()];

const isModule = (text: string): boolean => /^[ \t]*(?:export|import)\b/m.test(text);

/**
 * Declares the module of a package. Each declaration file after the first becomes a module with an internal name. If there is no such file,
 * or the second one is not a module, all exports of the package are `any`.
 */
function declarePackageModule(name: string, files: readonly string[] | null): string {
  // Skips the first file. It declares the package's global variable, for code that does not import the package.
  const [entry, ...others] = files?.slice(1) ?? [];
  if (entry === undefined || !isModule(entry)) return `declare module ${JSON.stringify(name)};`;
  const quoteModuleName = (index: number | string) => JSON.stringify(`svc-types:${name}/${index}`);
  const modules = [entry, ...others].map((text, index) =>
    createTypeBlock(`declare module ${quoteModuleName(index + 1)}`, [
      text.replaceAll(/"\.\/(\d{1,4})"/g, (_all, number) => quoteModuleName(number)),
    ]),
  );
  return [
    `declare module ${JSON.stringify(name)} {\n  import all = require(${quoteModuleName(1)});\n  export = all;\n}\n`,
    ...modules,
  ].join("\n");
}

function declarePackageModules(packages: PackageDeclarations): string[] {
  let characters = 0;
  return [...packages].map(([name, files]) => {
    const text = declarePackageModule(name, files);
    characters += text.length;
    return characters <= PACKAGE_TYPES_MAX_CHARACTERS ? text : declarePackageModule(name, null);
  });
}

/**
 * Builds the text of svc.d.ts from the definitions on the server and in the project's folder.
 * @param packages declarations of the packages that actions import
 * @param client text of the server's file /client/svc.d.ts; "" if it is not available
 */
export function buildProjectTypes(
  server: ProjectTypeDefinitions,
  local: ProjectTypeDefinitions,
  packages: PackageDeclarations,
  client: string,
): string {
  const settings = mergeItems(server.settings, local.settings, "key");
  const dataSources = mergeItems(server.dataSources, local.dataSources, "name");
  const sealedKeys = collectSealedKeys(server, local);
  const hiddenSettings = settings.filter(({ key }) => String(key).startsWith("_") && !sealedKeys.has(key));
  const publicSettings = settings.filter(({ key }) => !String(key).startsWith("_"));
  const dataSourceLines = dataSources.map(({ name, columns }) => {
    const columnLines = ((columns as string[] | undefined) ?? []).map((column) => `${JSON.stringify(column)}: any;`);
    return createPropertyLine(name, columnLines.length === 0 ? "Record<string, any>" : `{ ${columnLines.join(" ")} }`);
  });
  const api =
    client === ""
      ? CLIENT_FALLBACK_DECLARATIONS
      : client.replace("appSettings?: Record<string, unknown>", "appSettings?: SvcPublicSettings");
  const offeredNamespaces = NAMESPACE_NAMES.filter((name) => api.includes(`export interface ${name} {`));
  return [
    FILE_HEAD,
    createTypeBlock(
      "interface SvcSettings",
      // Declares these settings as optional, so that a test of an action can pass only the settings that it uses.
      hiddenSettings.map(({ key }) => createOptionalLine(key, "any")),
    ),
    createTypeBlock(
      "interface SvcPublicSettings",
      publicSettings.map((setting) => createPropertyLine(setting["key"], getSettingType(setting))),
    ),
    createTypeBlock("interface SvcDataSources", dataSourceLines),
    GLOBAL_DECLARATIONS,
    `declare const Svc: import("svc/client").Client & {\n  DataSources: SvcTypedDataSources;\n${offeredNamespaces
      .map((name) => `  ${name}: import("svc/client").${name};`)
      .join("\n")}\n};\n`,
    MODULE_DECLARATIONS,
    TEXT_MODULES,
    ...declarePackageModules(packages),
    createTypeBlock('declare module "svc/client"', [api.replaceAll("export declare const ", "export const ")]),
  ].join("\n");
}
