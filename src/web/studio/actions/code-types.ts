/**
 * Generates the type declarations with which TypeScript checks an action's code. They describe `context`, the listed packages of `Svc`,
 * and the globals of npm packages. The type of `context` is derived from the app's settings and past payloads.
 */

/** Package that the service itself provides. `namespace` is the property of `Svc` that contains it. */
export interface ServicePackage {
  name: string;
  namespace: string;
}

/** Dependency of an action, in the version that the service chose at the last save. */
export interface InstalledDependency {
  name: string;
  version?: string | null | undefined;
  /** Name of the global variable by which the action's code uses the package. */
  global?: string | null | undefined;
  integrity?: string | null | undefined;
}

export interface TypeDeclarationFile {
  filePath: string;
  content: string;
}

interface TypeSources {
  packages: readonly ServicePackage[];
  dependencies: readonly string[];
  installedDependencies: readonly InstalledDependency[];
  /** Keys of the app's settings. */
  settingKeys: readonly string[];
  environment: string;
  /** Payloads of past runs, from which the type of `context.payload` is derived. */
  pastPayloads: readonly unknown[];
  /** Type declaration files of each npm package, by the integrity hash of its script. A file imports another by its index in the list. */
  declarations?: ReadonlyMap<string, readonly string[]>;
}

export interface ActionTypeDeclarations {
  /** Type declarations of the globals, such as `Svc`. They import svc.d.ts and the files in `packages`. */
  globalDeclarations: string;
  packages: TypeDeclarationFile[];
  /**
   * True if the globals of a dependency are unknown, for example for a script from a URL or an unsaved dependency. The
   * editor then hides errors about unknown names.
   */
  hasUnknownNames: boolean;
}

export const ACTION_CONTEXT_TYPE_NAME = "ActionContext";

const MAX_TYPE_DEPTH = 5;
const MAX_KEYS_PER_TYPE = 60;
const MAX_KEY_CHARACTERS = 100;
const MAX_TYPE_CHARACTERS = 20_000;
/** Index signature that allows reading any key of a payload, because a later payload may have keys that no past payload had. */
const ANY_KEY_SIGNATURE = "[key: string]: any";

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const toDocComment = (text: string) => `/** ${text.replaceAll("*/", "* /")} */`;

/**
 * Returns an object type as text that describes all the objects. It contains the first MAX_KEYS_PER_TYPE keys. It leaves out keys that
 * are longer than MAX_KEY_CHARACTERS.
 * @param levels levels of nested objects to describe
 */
function createObjectType(values: readonly Record<string, unknown>[], levels: number): string {
  const valuesByKey = new Map<string, unknown[]>();
  for (const [key, memberValue] of values.flatMap(Object.entries)) {
    const seenValues = valuesByKey.get(key);
    if (seenValues) seenValues.push(memberValue);
    else if (valuesByKey.size < MAX_KEYS_PER_TYPE && key.length <= MAX_KEY_CHARACTERS)
      valuesByKey.set(key, [memberValue]);
  }
  const members = [...valuesByKey].map(
    ([key, seenValues]) => `${JSON.stringify(key)}: ${createCommonType(seenValues, levels - 1)}`,
  );
  return `{ ${[...members, ANY_KEY_SIGNATURE].join("; ")} }`;
}

/**
 * Returns the type that all values have in common, as text. Ignores null and undefined. Returns `any` if the types differ, if no value
 * is left, or if `levels` is negative.
 * @param levels levels of nested objects to describe
 */
function createCommonType(values: readonly unknown[], levels: number): string {
  const seenValues = values.filter((value) => value !== null && value !== undefined);
  const [first] = seenValues;
  if (seenValues.length === 0 || levels < 0) return "any";
  if (seenValues.every(isRecord)) return createObjectType(seenValues, levels);
  if (seenValues.every(Array.isArray)) return `${createCommonType(seenValues.flat(), levels - 1)}[]`;
  return typeof first !== "object" && seenValues.every((value) => typeof value === typeof first) ? typeof first : "any";
}

/** Returns the text of a type for the payloads. Describes fewer nested levels if the text exceeds MAX_TYPE_CHARACTERS. */
function createPayloadType(payloads: readonly unknown[]): string {
  const seenValues = payloads.filter(isRecord);
  for (let levels = MAX_TYPE_DEPTH; ; levels -= 1) {
    const type = createObjectType(seenValues, levels);
    if (type.length <= MAX_TYPE_CHARACTERS || levels === 0) return type;
  }
}

function createContextType({ settingKeys, environment, pastPayloads }: TypeSources): string {
  const readableKeys = environment === "server" ? settingKeys.filter((key) => key.startsWith("_")) : [];
  const keys = readableKeys.map((key) => {
    const tier = key.startsWith("__")
      ? "Protected: only server actions can read it."
      : "Private: editors, API tokens and server actions can read it.";
    return `${toDocComment(tier)} ${JSON.stringify(key)}: any;`;
  });
  return [
    `interface ${ACTION_CONTEXT_TYPE_NAME} {`,
    `  ${toDocComment(pastPayloads.length > 0 ? "Payload of the run. The type is that of the payloads of past runs." : "Payload of the run.")}`,
    `  payload: ${createPayloadType(pastPayloads)};`,
    `  ${toDocComment(environment === "server" ? "The app's private and protected settings." : "Empty, unless the environment is server.")}`,
    `  settings: { ${keys.join(" ")} ${ANY_KEY_SIGNATURE} };`,
    "}",
  ].join("\n");
}

const IDENTIFIER_PATTERN = /^[A-Za-z_$][\w$]*$/;

/** Returns the folder of a package's declaration files. Replaces "+" and "/" of the integrity hash, because the folder is part of a URL. */
const getPackageFolder = (integrity: string): string => `npm/${integrity.replaceAll("+", "-").replaceAll("/", "_")}`;

type Declarations = NonNullable<TypeSources["declarations"]>;

function declareGlobals(installedDependencies: readonly InstalledDependency[], declarations: Declarations): string[] {
  // If two packages have the same global name, the later package defines the global.
  const dependenciesByGlobal = new Map(
    installedDependencies.map((dependency) => [dependency.global ?? "", dependency]),
  );
  return [...dependenciesByGlobal]
    .filter(([name]) => IDENTIFIER_PATTERN.test(name))
    .map(([name, { name: dependency, version, integrity }]) => {
      const type =
        integrity && declarations.has(integrity) ? `import("./${getPackageFolder(integrity)}/0").Value` : "any";
      return `${toDocComment([dependency, version].filter(Boolean).join(", "))} declare const ${name}: ${type};`;
    });
}

function createDeclarationFiles(
  installedDependencies: readonly InstalledDependency[],
  declarations: Declarations,
): TypeDeclarationFile[] {
  const integrities = new Set(installedDependencies.flatMap(({ integrity }) => integrity ?? []));
  return [...integrities].flatMap((integrity) =>
    (declarations.get(integrity) ?? []).map((content, index) => ({
      filePath: `${getPackageFolder(integrity)}/${index}.d.ts`,
      content,
    })),
  );
}

/** Type declarations that let JavaScript code add any property to `window` and to errors. TypeScript would otherwise report an error. */
const EXTENSIBLE_INTERFACES = ["Window", "Error"].map((name) => `interface ${name} { ${ANY_KEY_SIGNATURE} }`);

export function createActionTypeDeclarations(typeSources: TypeSources): ActionTypeDeclarations {
  const { packages, dependencies, installedDependencies, declarations = new Map() } = typeSources;
  const listedPackages = packages.filter(({ name }) => dependencies.includes(name));
  const packageMembers = listedPackages.map(
    ({ name, namespace }) => `${toDocComment(name)} ${namespace}: import("./svc").${namespace};`,
  );
  const otherDependencies = dependencies.filter((name) => !packages.some((svcPackage) => svcPackage.name === name));
  const isOperatorPackage = (name: string) => name.startsWith("svc-");
  const otherInstalledDependencies = installedDependencies.filter(({ name }) => otherDependencies.includes(name));
  const svcMembers = [
    ...packageMembers,
    ...(otherDependencies.some(isOperatorPackage) ? [`${ANY_KEY_SIGNATURE};`] : []),
  ];
  return {
    globalDeclarations: [
      createContextType(typeSources),
      `declare const Svc: import("./svc").Client & { ${svcMembers.join(" ")} };`,
      ...declareGlobals(otherInstalledDependencies, declarations),
      ...EXTENSIBLE_INTERFACES,
    ].join("\n"),
    packages: createDeclarationFiles(otherInstalledDependencies, declarations),
    hasUnknownNames: otherDependencies.some(
      (name) =>
        !isOperatorPackage(name) &&
        !otherInstalledDependencies.some(
          (dependency) => dependency.name === name && IDENTIFIER_PATTERN.test(dependency.global ?? ""),
        ),
    ),
  };
}

/**
 * Replaces the type `unknown` by `any` in svc.d.ts. Plain JavaScript cannot cast an `unknown` value to the type that it
 * needs.
 */
export const replaceUnknownByAny = (declarations: string): string => declarations.replace(/\bunknown\b/g, "any");

/** TypeScript compiler options. The numbers are values of the compiler's enums. */
export const COMPILER_OPTIONS = {
  target: 99,
  module: 99,
  moduleResolution: 2,
  // Each open file is a separate module, so that two files do not share their globals.
  moduleDetection: 3,
  allowJs: true,
  checkJs: true,
  allowNonTsExtensions: true,
  noEmit: true,
  // Allows default imports of CommonJS modules, as esbuild does, with which the service bundles npm packages.
  esModuleInterop: true,
  strict: false,
};
