/** Collects the TypeScript declarations of a package and of its imports as a list. A file's number in this list replaces its path. */
import { dirname, join } from "node:path/posix";
import enhancedResolve from "enhanced-resolve";
import type { FileTree } from "./file-tree.js";
import type { PackageGlobalName } from "./global-name.js";

/** Maximum declaration files of a package. More of them would make code editors slow. */
const DECLARATION_FILES_MAX = 600;
const DECLARATION_TEXTS_MAX_BYTES = 1024 * 1024;
const IMPORTS_MAX = 3_000;

const PACKAGE_NAME_PATTERN = /^(?:@[^/]+\/)?[^/]+/;
const DECLARATION_FILE_PATTERN = /\.d\.[cm]?ts$/;
/** Extensions of JavaScript modules, each with the extension of the declaration file in the same folder. */
const DECLARATION_EXTENSIONS: readonly [RegExp, string][] = [
  [/\.mjs$/, ".d.mts"],
  [/\.cjs$/, ".d.cts"],
  [/\.jsx?$/, ".d.ts"],
];

const MODULE_KEYWORD_PATTERN = /\b(?:from|import|require|module)\b/g;
const QUOTED_NAME_PATTERN = /(\s*(?:\(\s*)?)["']([^"'\n]+)["']/y;
/** Start of `<reference path="…">`, with which a declaration file refers to another one. */
const PATH_REFERENCE_PATTERN = /<reference\s+path\s*=/g;
const SPECIFIER_MAX_CHARACTERS = 300;

const isShortSpecifier = (specifier: string): boolean => specifier.length <= SPECIFIER_MAX_CHARACTERS;

/**
 * Replaces each quoted module name that follows a match of `before`. A single regular expression for both could take quadratic time.
 * @param replace returns the new name
 */
function replaceSpecifiers(text: string, before: RegExp, replace: (specifier: string) => string): string {
  let output = "";
  let from = 0;
  for (const match of text.matchAll(before)) {
    QUOTED_NAME_PATTERN.lastIndex = match.index + match[0].length;
    const [all, space, specifier] = QUOTED_NAME_PATTERN.exec(text) ?? [];
    if (all === undefined || match.index < from || !isShortSpecifier(specifier!)) continue;
    if (space!.includes("(") && match[0] !== "import" && match[0] !== "require") continue;
    output += `${text.slice(from, match.index)}${match[0]}${space}"${replace(specifier!)}"`;
    from = match.index + match[0].length + all.length;
  }
  return output + text.slice(from);
}

export const isDeclarationFile = (path: string): boolean => DECLARATION_FILE_PATTERN.test(path);

const getTypesPackageName = (name: string): string =>
  name.replace(/^(?:@([^/]+)\/)?([^/]+)/, (_all, scope, bare) => `@types/${scope ? `${scope}__` : ""}${bare}`);

function createDeclarationFinder(tree: FileTree) {
  const resolver = enhancedResolve.ResolverFactory.createResolver({
    fileSystem: tree.toFileSystem(),
    useSyncFileSystemCalls: false,
    symlinks: false,
    extensions: [".d.ts", ".d.mts", ".d.cts", ".js", ".mjs", ".cjs"],
    extensionAlias: { ".js": [".d.ts", ".js"], ".mjs": [".d.mts", ".mjs"], ".cjs": [".d.cts", ".cjs"] },
    conditionNames: ["types", "import", "module", "browser", "default"],
    mainFields: ["types", "typings", "module", "main"],
    modules: ["node_modules"],
    roots: [],
  });
  const resolveSpecifier = (specifier: string, folder: string) =>
    new Promise<string | null>((resolve) => {
      resolver.resolve({}, folder, specifier, {}, (_error, path) => resolve(typeof path === "string" ? path : null));
    });

  /** Returns the path if it is a declaration file, or the declaration file with the same name beside it; null if there is none. */
  function findReadableDeclaration(resolvedPath: string | null): string | null {
    if (resolvedPath === null) return null;
    const siblingPaths = DECLARATION_EXTENSIONS.map(([ending, declarationExtension]) =>
      resolvedPath.replace(ending, declarationExtension),
    );
    return [resolvedPath, ...siblingPaths].find((path) => isDeclarationFile(path) && tree.read(path)) ?? null;
  }

  /**
   * True if modules in the folder can import the package. Without this check, the resolver takes a thousand times as long for a missing
   * package.
   */
  function isInstalled(name: string, startFolder: string): boolean {
    for (let at = startFolder; ; at = dirname(at)) {
      if (tree.read(join(at, "node_modules", name, "package.json"))) return true;
      if (at === "/") return false;
    }
  }

  return async (specifier: string, folder: string): Promise<string | null> => {
    if (specifier.startsWith(".")) return findReadableDeclaration(await resolveSpecifier(specifier, folder));
    const [name = ""] = PACKAGE_NAME_PATTERN.exec(specifier) ?? [];
    const candidates = [
      ...(isInstalled(name, folder) ? [specifier, ...(name === specifier ? [`${specifier}/index.d.ts`] : [])] : []),
      ...(isInstalled(getTypesPackageName(name), folder) ? [getTypesPackageName(specifier)] : []),
    ];
    for (const candidate of candidates) {
      const declarationPath = findReadableDeclaration(await resolveSpecifier(candidate, folder));
      if (declarationPath !== null) return declarationPath;
    }
    return null;
  };
}

/** Returns the text of the declaration file that comes first in the result. It declares the type of the package's global variable. */
function createGlobalTypeText(namespace: boolean): string {
  const value = namespace ? "All" : "All extends { default: infer Default } ? Default : All";
  return `type All = typeof import("./1");\nexport type Value = ${value};\n`;
}

/** Files in the order in which they were found. In each text, the number of an imported file replaces its path. */
class DeclarationFiles {
  readonly texts: string[] = [];
  private readonly paths: string[] = [];
  private bytes = 0;
  private importCount = 0;

  constructor(
    private readonly tree: FileTree,
    private readonly findDeclaration: ReturnType<typeof createDeclarationFinder>,
  ) {}

  getFileNumber(path: string): number {
    if (!this.paths.includes(path)) this.paths.push(path);
    return this.paths.indexOf(path) + 1;
  }

  /** Reads all files that the first file imports, directly or indirectly. Returns false if they exceed a limit. */
  async readAll(): Promise<boolean> {
    for (let at = 0; at < this.paths.length; at += 1) {
      const content = this.tree.read(this.paths[at]!)!;
      this.bytes += content.length;
      if (this.bytes > DECLARATION_TEXTS_MAX_BYTES) return false;
      this.texts.push(await this.replaceImportsByNumbers(String(content), dirname(this.paths[at]!)));
      if (this.paths.length > DECLARATION_FILES_MAX || this.importCount > IMPORTS_MAX) return false;
    }
    return true;
  }

  private async replaceImportsByNumbers(text: string, folder: string): Promise<string> {
    const numberBySpecifier = new Map<string, number>();
    const specifiers = new Set<string>();
    replaceSpecifiers(text, MODULE_KEYWORD_PATTERN, (specifier) => {
      specifiers.add(specifier);
      return specifier;
    });
    this.importCount += specifiers.size;
    for (const specifier of [...specifiers].slice(0, IMPORTS_MAX)) {
      const file = await this.findDeclaration(specifier, folder);
      if (file !== null) numberBySpecifier.set(specifier, this.getFileNumber(file));
    }
    const rewriteSpecifier = (specifier: string) => {
      const file = join(folder, specifier);
      return isDeclarationFile(file) && this.tree.read(file) ? `./${this.getFileNumber(file)}.d.ts` : specifier;
    };
    const textWithNumbers = replaceSpecifiers(text, MODULE_KEYWORD_PATTERN, (specifier) =>
      numberBySpecifier.has(specifier) ? `./${numberBySpecifier.get(specifier)}` : specifier,
    );
    return replaceSpecifiers(textWithNumbers, PATH_REFERENCE_PATTERN, rewriteSpecifier);
  }
}

/** Returns the texts of a package's declaration files; null if the package has none, or if a limit is exceeded. */
export async function collectDeclarations(
  tree: FileTree,
  { name }: { name: string },
  { isNamespace: namespace }: PackageGlobalName,
): Promise<string[] | null> {
  const findDeclaration = createDeclarationFinder(tree);
  const entry = await findDeclaration(name, "/");
  if (entry === null) return null;
  const declarationFiles = new DeclarationFiles(tree, findDeclaration);
  declarationFiles.getFileNumber(entry);
  if (!(await declarationFiles.readAll())) return null;
  const files = [createGlobalTypeText(namespace), ...declarationFiles.texts];
  return Buffer.byteLength(JSON.stringify(files)) > DECLARATION_TEXTS_MAX_BYTES ? null : files;
}
