/**
 * Builds svc.d.ts, the types of an app: keys of settings, columns of data sources, packages, and the `Svc` global. The
 * service serves it, and the command line writes it into a project.
 */
import { importName } from "./packages.js";

type Item = Record<string, unknown>;

/** The parts of a manifest from which types are built. */
export interface TypedDefinitions {
  settings?: Item[] | undefined;
  dataSources?: Item[] | undefined;
  secretBindings?: Item[] | undefined;
}

/** Declarations of packages by name, as files that import each other by number; null if a package ships none. */
export type PackageDeclarations = ReadonlyMap<string, readonly string[] | null>;

/** An action's dependencies, and the scripts that the service resolved them to. */
interface DependentDefinition {
  dependencies?: unknown;
  assets?: { name: string; integrity: string }[] | undefined;
}

const HASH_PREFIX = "sha256-";

/**
 * Returns the integrity of each package's script by the name that code imports; null for a package without one, such as one that was never
 * saved.
 */
export function importedPackages(actions: readonly DependentDefinition[]): Map<string, string | null> {
  const typesByName = new Map<string, string | null>();
  for (const { dependencies, assets = [] } of actions) {
    for (const dependency of Array.isArray(dependencies) ? dependencies : []) {
      if (typeof dependency !== "string" || URL.canParse(dependency)) continue;
      const { integrity } = assets.find(({ name }) => name === dependency) ?? {};
      const hashed = integrity?.startsWith(HASH_PREFIX) ? integrity : null;
      typesByName.set(importName(dependency), hashed ?? typesByName.get(importName(dependency)) ?? null);
    }
  }
  return new Map([...typesByName].sort(([a], [b]) => (a < b ? -1 : 1)));
}

const FILE_HEAD = `/** Types of this app. \`svc dev\` and \`svc check\` write this file; changes to it are lost. */`;

/** Maximum length of declarations. Larger ones slow down each check, so packages beyond this are `any`. */
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

/** Declarations that are used before the first contact with the server. They allow everything. */
const UNKNOWN_CLIENT = `export interface LimitData { [field: string]: any }
export type Trigger = any;
export type Client = any;
export type EntryQuery = any;
export type Entry<Row> = any;
export type DataSources = any;
export type DataSourceConnection = any;`;

/** Extensions of files that code imports as text. */
const TEXT_MODULES = ["html", "txt", "md", "csv", "sql", "css", "svg"]
  .map((extension) => `declare module "*.${extension}" {\n  const text: string;\n  export default text;\n}`)
  .join("\n");

const propertyLine = (name: unknown, type: string): string => `  ${JSON.stringify(name)}: ${type};`;
const optionalLine = (name: unknown, type: string): string => `  ${JSON.stringify(name)}?: ${type};`;

/** Returns the keys that code does not receive, because they have a sealed secret binding. */
function sealedKeys(...definitions: TypedDefinitions[]): Set<unknown> {
  const bindings = definitions.flatMap(({ secretBindings }) => secretBindings ?? []);
  return new Set(bindings.filter(({ sealed }) => sealed === true).map(({ key }) => key));
}

const settingType = ({ value }: Item): string =>
  value !== undefined && value !== null && typeof value !== "object" ? typeof value : "any";

function typeBlock(head: string, lines: readonly string[]): string {
  return `${head} {\n${lines.join("\n")}\n}\n`;
}

/** Returns items of both lists by key. Those of the folder replace the server's. */
const mergeItems = (server: readonly Item[] = [], local: readonly Item[] = [], key: string): Item[] => [
  ...new Map([...server, ...local].map((item) => [item[key], item])).values(),
];

const isModule = (text: string): boolean => /^[ \t]*(?:export|import)\b/m.test(text);

/** Returns the package as a module with its own types; `any` if it ships none. Its files become modules that only these types import. */
function packageModule(name: string, files: readonly string[] | null): string {
  // The first file is the type of the global, for code without imports.
  const [entry, ...others] = files?.slice(1) ?? [];
  if (entry === undefined || !isModule(entry)) return `declare module ${JSON.stringify(name)};`;
  const place = (index: number | string) => JSON.stringify(`svc-types:${name}/${index}`);
  const modules = [entry, ...others].map((text, index) =>
    typeBlock(`declare module ${place(index + 1)}`, [
      text.replaceAll(/"\.\/(\d{1,4})"/g, (_all, number) => place(number)),
    ]),
  );
  return [
    `declare module ${JSON.stringify(name)} {\n  import all = require(${place(1)});\n  export = all;\n}\n`,
    ...modules,
  ].join("\n");
}

function packageModules(packages: PackageDeclarations): string[] {
  let characters = 0;
  return [...packages].map(([name, files]) => {
    const text = packageModule(name, files);
    characters += text.length;
    return characters <= PACKAGE_TYPES_MAX_CHARACTERS ? text : packageModule(name, null);
  });
}

/** @param local definitions of the folder @param packages that actions import @param client text of /client/svc.d.ts */
export function projectTypes(
  server: TypedDefinitions,
  local: TypedDefinitions,
  packages: PackageDeclarations,
  client: string,
): string {
  const settings = mergeItems(server.settings, local.settings, "key");
  const dataSources = mergeItems(server.dataSources, local.dataSources, "name");
  const sealedNames = sealedKeys(server, local);
  const hiddenSettings = settings.filter(({ key }) => String(key).startsWith("_") && !sealedNames.has(key));
  const publicSettings = settings.filter(({ key }) => !String(key).startsWith("_"));
  const sources = dataSources.map(({ name, columns }) => {
    const rows = ((columns as string[] | undefined) ?? []).map((column) => `${JSON.stringify(column)}: any;`);
    return propertyLine(name, rows.length === 0 ? "Record<string, any>" : `{ ${rows.join(" ")} }`);
  });
  const api =
    client === ""
      ? UNKNOWN_CLIENT
      : client.replace("appSettings?: Record<string, unknown>", "appSettings?: SvcPublicSettings");
  const offeredNamespaces = NAMESPACE_NAMES.filter((name) => api.includes(`export interface ${name} {`));
  return [
    FILE_HEAD,
    typeBlock(
      "interface SvcSettings",
      // Optional, so that a test names only those that it needs.
      hiddenSettings.map(({ key }) => optionalLine(key, "any")),
    ),
    typeBlock(
      "interface SvcPublicSettings",
      publicSettings.map((setting) => propertyLine(setting["key"], settingType(setting))),
    ),
    typeBlock("interface SvcDataSources", sources),
    GLOBAL_DECLARATIONS,
    `declare const Svc: import("svc/client").Client & {\n  DataSources: SvcTypedDataSources;\n${offeredNamespaces
      .map((name) => `  ${name}: import("svc/client").${name};`)
      .join("\n")}\n};\n`,
    MODULE_DECLARATIONS,
    TEXT_MODULES,
    ...packageModules(packages),
    typeBlock('declare module "svc/client"', [api.replaceAll("export declare const ", "export const ")]),
  ].join("\n");
}
