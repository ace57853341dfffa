/**
 * What TypeScript is to know of an action's code, as declarations: `context` by the app's settings and past payloads, `Svc` with the
 * packages that are listed, and npm's by their global names, as they declare themselves. Reads values and names; knows no editor and asks
 * nobody.
 */

/** A package and the name that it has under `Svc`. */
export interface Package {
  name: string;
  namespace: string;
}

/** What a dependency became when the action was saved. */
export interface Installed {
  name: string;
  version?: string | null | undefined;
  /** The name under which code finds it. */
  global?: string | null | undefined;
  integrity?: string | null | undefined;
}

/** A file of types, at its place beside the others. */
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
  /** What npm's packages declare, by the integrity of their scripts: files that name each other by number. */
  declarations?: ReadonlyMap<string, readonly string[]>;
}

export interface ActionTypes {
  /** Declarations for the global scope. They import svc.d.ts from beside them, and files of `packages`. */
  text: string;
  packages: TypesFile[];
  /** What a dependency defines is not known (a script at an address, or one not saved yet): an unknown name may be right. */
  hasUnknownNames: boolean;
}

/** What the code's parameter is declared as. */
export const CONTEXT_TYPE = "ActionContext";

const LEVELS_MAX = 5;
const KEYS_MAX = 60;
const KEY_CHARACTERS_MAX = 100;
const CHARACTERS_MAX = 20_000;
/** What came in no run may come in the next. */
const OTHERS = "[key: string]: any";

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const comment = (text: string) => `/** ${text.replaceAll("*/", "* /")} */`;

/** The keys that were seen in any of the values, each with the type that it had. */
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

/** `any` where they were of several kinds: what is done with each is decided by code that asks first. */
function typeOf(values: readonly unknown[], levels: number): string {
  const seen = values.filter((value) => value !== null && value !== undefined);
  const [first] = seen;
  if (seen.length === 0 || levels < 0) return "any";
  if (seen.every(isRecord)) return shapeOf(seen, levels);
  if (seen.every(Array.isArray)) return `${typeOf(seen.flat(), levels - 1)}[]`;
  return typeof first !== "object" && seen.every((value) => typeof value === typeof first) ? typeof first : "any";
}

/** The type of payloads like these, as deep as it can be said in few words. */
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

/** The folder of a package's declarations: base64 as addresses have it. */
const folderOf = (integrity: string): string => `npm/${integrity.replaceAll("+", "-").replaceAll("/", "_")}`;

type Declarations = NonNullable<Known["declarations"]>;

function globalsOf(installed: readonly Installed[], declarations: Declarations): string[] {
  // Of two with one name the later is the one that code finds.
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

/** What JavaScript adds to at any time, and TypeScript would refuse. */
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

/** svc.d.ts for code without types of its own: what may be anything can be used as anything. */
export const loosened = (declarations: string): string => declarations.replace(/\bunknown\b/g, "any");

/** As numbers of the compiler's: the newest language and its modules, each file one; JavaScript, judged without strictness. */
export const COMPILER_OPTIONS = {
  target: 99,
  module: 99,
  moduleResolution: 2,
  // Two codes that are open are no one program.
  moduleDetection: 3,
  allowJs: true,
  checkJs: true,
  allowNonTsExtensions: true,
  noEmit: true,
  // As the script was made that packages became.
  esModuleInterop: true,
  strict: false,
};
