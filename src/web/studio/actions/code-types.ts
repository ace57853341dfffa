/**
 * Generates the type declarations that TypeScript uses for an action's code: `context` by the app's settings and past payloads, `Svc` with
 * the listed packages, and the globals of npm packages.
 */

/** Package of the service and its property name in `Svc`. */
export interface Package {
  name: string;
  namespace: string;
}

/** Installed version of a dependency, as resolved when the action was saved. */
export interface Installed {
  name: string;
  version?: string | null | undefined;
  /** Global name of the package in the action's code. */
  global?: string | null | undefined;
  integrity?: string | null | undefined;
}

/** File with type declarations, with its path. */
export interface TypesFile {
  path: string;
  text: string;
}

interface Known {
  packages: readonly Package[];
  dependencies: readonly string[];
  installed: readonly Installed[];
  /** Keys of the app's settings. */
  settings: readonly string[];
  environment: string;
  /** Payloads of past runs. */
  payloads: readonly unknown[];
  /** Declaration files of npm packages, by the integrity of their scripts. The files refer to each other by number. */
  declarations?: ReadonlyMap<string, readonly string[]>;
}

export interface ActionTypes {
  /** Declarations for the global scope. They import svc.d.ts and files of `packages`. */
  text: string;
  packages: TypesFile[];
  /**
   * True if the globals of a dependency are unknown, such as a script from a URL or an unsaved dependency. Unknown names are then no
   * errors.
   */
  hasUnknownNames: boolean;
}

/** Name of the type of the parameter of `execute`. */
export const CONTEXT_TYPE = "ActionContext";

const LEVELS_MAX = 5;
const KEYS_MAX = 60;
const KEY_CHARACTERS_MAX = 100;
const CHARACTERS_MAX = 20_000;
/** Allows keys that no past run had, because future payloads may have them. */
const OTHERS = "[key: string]: any";

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const comment = (text: string) => `/** ${text.replaceAll("*/", "* /")} */`;

/** Returns an object type with all keys of the values, each with the type of its values. */
function shapeOf(values: readonly Record<string, unknown>[], levels: number): string {
  const byKey = new Map<string, unknown[]>();
  for (const [key, inner] of values.flatMap(Object.entries)) {
    const seen = byKey.get(key);
    if (seen) seen.push(inner);
    else if (byKey.size < KEYS_MAX && key.length <= KEY_CHARACTERS_MAX) byKey.set(key, [inner]);
  }
  const members = [...byKey].map(([key, seen]) => `${JSON.stringify(key)}: ${typeOf(seen, levels - 1)}`);
  return `{ ${[...members, OTHERS].join("; ")} }`;
}

/** Returns the common type of the values, or `any` if they have different types, because the code then checks the type itself. */
function typeOf(values: readonly unknown[], levels: number): string {
  const seen = values.filter((value) => value !== null && value !== undefined);
  const [first] = seen;
  if (seen.length === 0 || levels < 0) return "any";
  if (seen.every(isRecord)) return shapeOf(seen, levels);
  if (seen.every(Array.isArray)) return `${typeOf(seen.flat(), levels - 1)}[]`;
  return typeof first !== "object" && seen.every((value) => typeof value === typeof first) ? typeof first : "any";
}

/** Returns a type for the payloads. Its depth is reduced until the text is short enough. */
function payloadType(payloads: readonly unknown[]): string {
  const seen = payloads.filter(isRecord);
  for (let levels = LEVELS_MAX; ; levels -= 1) {
    const type = shapeOf(seen, levels);
    if (type.length <= CHARACTERS_MAX || levels === 0) return type;
  }
}

function contextType({ settings, environment, payloads }: Known): string {
  const readable = environment === "server" ? settings.filter((key) => key.startsWith("_")) : [];
  const keys = readable.map((key) => {
    const tier = key.startsWith("__")
      ? "Protected: server actions alone read it."
      : "Private: editors and server actions read it.";
    return `${comment(tier)} ${JSON.stringify(key)}: any;`;
  });
  return [
    `interface ${CONTEXT_TYPE} {`,
    `  ${comment(payloads.length > 0 ? "What the run was given; as past runs had it." : "What the run was given.")}`,
    `  payload: ${payloadType(payloads)};`,
    `  ${comment(environment === "server" ? "The app's private and protected settings." : "Empty, unless the environment is server.")}`,
    `  settings: { ${keys.join(" ")} ${OTHERS} };`,
    "}",
  ].join("\n");
}

const NAME = /^[A-Za-z_$][\w$]*$/;

/** Returns the folder of a package's declarations. The base64 of the integrity is made safe for URLs. */
const folderOf = (integrity: string): string => `npm/${integrity.replaceAll("+", "-").replaceAll("/", "_")}`;

type Declarations = NonNullable<Known["declarations"]>;

function globalsOf(installed: readonly Installed[], declarations: Declarations): string[] {
  // If two packages have the same global name, the code gets the later one.
  const byName = new Map(installed.map((one) => [one.global ?? "", one]));
  return [...byName]
    .filter(([name]) => NAME.test(name))
    .map(([name, { name: dependency, version, integrity }]) => {
      const type = integrity && declarations.has(integrity) ? `import("./${folderOf(integrity)}/0").Value` : "any";
      return `${comment([dependency, version].filter(Boolean).join(", "))} declare const ${name}: ${type};`;
    });
}

function filesOf(installed: readonly Installed[], declarations: Declarations): TypesFile[] {
  const used = new Set(installed.flatMap(({ integrity }) => integrity ?? []));
  return [...used].flatMap((integrity) =>
    (declarations.get(integrity) ?? []).map((text, at) => ({ path: `${folderOf(integrity)}/${at}.d.ts`, text })),
  );
}

/** Interfaces that JavaScript code extends with properties of its own, which TypeScript would reject. */
const OPEN = ["Window", "Error"].map((name) => `interface ${name} { ${OTHERS} }`);

export function actionTypes(known: Known): ActionTypes {
  const { packages, dependencies, installed, declarations = new Map() } = known;
  const listed = packages.filter(({ name }) => dependencies.includes(name));
  const own = listed.map(({ name, namespace }) => `${comment(name)} ${namespace}: import("./svc").${namespace};`);
  const others = dependencies.filter((name) => !packages.some((one) => one.name === name));
  const isOperators = (name: string) => name.startsWith("svc-");
  const kept = installed.filter(({ name }) => others.includes(name));
  const svc = [...own, ...(others.some(isOperators) ? [`${OTHERS};`] : [])];
  return {
    text: [
      contextType(known),
      `declare const Svc: import("./svc").Client & { ${svc.join(" ")} };`,
      ...globalsOf(kept, declarations),
      ...OPEN,
    ].join("\n"),
    packages: filesOf(kept, declarations),
    hasUnknownNames: others.some(
      (name) => !isOperators(name) && !kept.some((one) => one.name === name && NAME.test(one.global ?? "")),
    ),
  };
}

/** Replaces `unknown` by `any` in svc.d.ts, because action code has no types to narrow a value with. */
export const loosened = (declarations: string): string => declarations.replace(/\bunknown\b/g, "any");

/** Compiler options as numbers of TypeScript's enums: newest language and modules, each file a module, JavaScript without strict checks. */
export const COMPILER_OPTIONS = {
  target: 99,
  module: 99,
  moduleResolution: 2,
  // Each open file is a module of its own, so that two files do not share their globals.
  moduleDetection: 3,
  allowJs: true,
  checkJs: true,
  allowNonTsExtensions: true,
  noEmit: true,
  // The same option as when the service bundles packages.
  esModuleInterop: true,
  strict: false,
};
