/** Finds a package's global variable in its browser build or README; otherwise creates a name from the package name. */
import { type AnyNode, type Program, parse } from "acorn";
import { simple } from "acorn-walk";
import globals from "globals";

export interface PackageGlobalName {
  name: string;
  /** True if the global contains all exports although the module has a default export. */
  isNamespace: boolean;
}

const IDENTIFIER_PATTERN = /^[A-Za-z_$][\w$]{0,99}$/;
const RESERVED_WORDS = new Set(
  (
    "arguments await break case catch class const continue debugger default delete do else enum eval export extends false " +
    "finally for function if implements import in instanceof interface let new null package private protected public return " +
    "static super switch this throw true try typeof undefined var void while with yield execute Svc require module exports"
  ).split(" "),
);
const EXISTING_GLOBALS = new Set([
  ...Object.keys(globals.builtin),
  ...Object.keys(globals.browser),
  ...Object.keys(globals.worker),
]);

const isUsableGlobalName = (name: string): boolean =>
  IDENTIFIER_PATTERN.test(name) &&
  !RESERVED_WORDS.has(name) &&
  !EXISTING_GLOBALS.has(name) &&
  !(name in Object.prototype);

/** Maximum length of a browser build that is searched for the name of its global. The search parses the whole file. */
const SEARCHED_BUILD_MAX_CHARACTERS = 2_000_000;
const README_MAX_CHARACTERS = 200_000;

function readPropertyName(node: AnyNode): string | null {
  if (node.type !== "MemberExpression") return null;
  if (!node.computed) return node.property.type === "Identifier" ? node.property.name : null;
  return node.property.type === "Literal" && typeof node.property.value === "string" ? node.property.value : null;
}

const isModuleReference = (node: AnyNode): boolean =>
  node.type === "Identifier" && (node.name === "module" || node.name === "exports" || node.name === "define");

/** True for an object literal such as `{}`, or `… || {}`. A UMD build may assign this object to its global, and then add all exports. */
const isFillableObject = (value: AnyNode): boolean =>
  value.type === "ObjectExpression" || (value.type === "LogicalExpression" && value.right.type === "ObjectExpression");

/** Returns the globals that a wrapper assigns. Includes properties of any object, because the object may be the global object. */
function findAssignedGlobals(wrapper: AnyNode): PackageGlobalName[] {
  const names: PackageGlobalName[] = [];
  simple(wrapper, {
    AssignmentExpression({ left, operator, right }) {
      if (operator !== "=" || left.type !== "MemberExpression" || isModuleReference(left.object)) return;
      const name = readPropertyName(left);
      if (name !== null && isUsableGlobalName(name) && name !== "amd" && name !== "noConflict")
        names.push({ name, isNamespace: isFillableObject(right) });
    },
  });
  return names;
}

/** Returns the bodies of the wrappers of a UMD build: functions that are called at once with the module's factory. */
function findWrappers({ body }: Program): AnyNode[] {
  return body.flatMap((statement) => {
    if (statement.type !== "ExpressionStatement") return [];
    const { expression } = statement;
    const call = expression.type === "UnaryExpression" ? expression.argument : expression;
    if (call.type !== "CallExpression" || call.callee.type !== "FunctionExpression") return [];
    return call.arguments.some(({ type }) => type.includes("Function")) ? [call.callee.body] : [];
  });
}

const equalsIgnoringCase = (left: string, right: string): boolean => left.toLowerCase() === right.toLowerCase();

/** Returns the global name that a script sets if a `<script>` element loads it; null if there is none, or if several names are possible. */
export function findGlobalNameInBuild(source: string, packageName: string): PackageGlobalName | null {
  if (source.length > SEARCHED_BUILD_MAX_CHARACTERS) return null;
  try {
    const program = parse(source, { ecmaVersion: "latest", sourceType: "script", allowHashBang: true });
    const assignedGlobals = findWrappers(program).flatMap((wrapper) => findAssignedGlobals(wrapper).slice(0, 1));
    const declarators = program.body.flatMap((statement) =>
      statement.type === "VariableDeclaration" ? statement.declarations : [],
    );
    const variableGlobals = declarators.flatMap(({ id }) =>
      id.type === "Identifier" && isUsableGlobalName(id.name) ? [{ name: id.name, isNamespace: false }] : [],
    );
    const camelCaseName = toCamelCaseName(packageName);
    const matchingGlobal = [...assignedGlobals, ...variableGlobals].find(({ name }) =>
      equalsIgnoringCase(name, camelCaseName),
    );
    // A build can include other packages with their own globals, so several unknown names do not identify the global of this package.
    const candidates = assignedGlobals.length > 0 ? assignedGlobals : variableGlobals;
    return matchingGlobal ?? (candidates.length === 1 ? candidates[0]! : null);
  } catch {
    return null;
  }
}

/** Returns the name of the global in the README's examples; null if there is none. */
export function findGlobalNameInReadme(readme: string, packageName: string): PackageGlobalName | null {
  const text = readme.slice(0, README_MAX_CHARACTERS);
  const escapedName = packageName.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");
  const importPatterns: [RegExp, boolean][] = [
    [
      new RegExp(
        `\\b(?:const|let|var)\\s+([\\w$]+)\\s*=\\s*require\\(\\s*["']${escapedName}["']\\s*\\)\\s*(?:;|\\n|$)`,
      ),
      false,
    ],
    [new RegExp(`\\bimport\\s+([\\w$]+)\\s+from\\s*["']${escapedName}["']`), false],
    [new RegExp(`\\bimport\\s+\\*\\s+as\\s+([\\w$]+)\\s+from\\s*["']${escapedName}["']`), true],
  ];
  const matches = importPatterns.flatMap(([pattern, isNamespace]) => {
    const match = pattern.exec(text);
    return match && isUsableGlobalName(match[1]!) ? [{ name: match[1]!, isNamespace, at: match.index }] : [];
  });
  const [first] = matches.sort((a, b) => a.at - b.at);
  if (first) return { name: first.name, isNamespace: first.isNamespace };
  // If the examples destructure exports from the global, the global contains all exports.
  const destructuringPatterns = [
    new RegExp(`\\bimport\\s*\\{[^{}]*\\}\\s*from\\s*["']${escapedName}["']`),
    new RegExp(`\\{[^{}]*\\}\\s*=\\s*require\\(\\s*["']${escapedName}["']`),
  ];
  const isNamespace = destructuringPatterns.some((pattern) => pattern.test(text));
  const name = findSpelling(text, packageName) ?? (isNamespace ? toCamelCaseName(packageName) : null);
  return name === null ? null : { name, isNamespace };
}

/** Finds the package name, in any capitalization, in calls of the README, such as `Handlebars.compile(…)`. */
function findSpelling(text: string, packageName: string): string | null {
  const camelCaseName = toCamelCaseName(packageName);
  const spellings = text.matchAll(
    new RegExp(`(?<![\\w$./@-])${camelCaseName.replaceAll("$", "\\$")}(?=(?:\\.(?!js\\b)|\\()\\w)`, "gi"),
  );
  const counts = new Map<string, number>();
  for (const [name] of spellings) if (isUsableGlobalName(name)) counts.set(name, (counts.get(name) ?? 0) + 1);
  const [mostFrequent] = [...counts].sort(([, a], [, b]) => b - a);
  return mostFrequent?.[0] ?? null;
}

/**
 * Converts a package name to the name of a global: `date-fns` to dateFns, `@scope/some.name` to someName. If someName is a keyword or
 * exists in browsers, the result is scopeSomeName; without a scope, it is npmSomeName.
 */
export function toCamelCaseName(packageName: string): string {
  const toCamelCase = (text: string) => {
    const words = text.split(/[^A-Za-z0-9$_]+/).filter(Boolean);
    const camelCaseText = words
      .map((word, index) => (index === 0 ? word : word[0]!.toUpperCase() + word.slice(1)))
      .join("");
    return /^[0-9]/.test(camelCaseText) ? `_${camelCaseText}` : camelCaseText;
  };
  const [scope, bare] = packageName.startsWith("@") ? packageName.slice(1).split("/") : [null, packageName];
  const candidates = [
    toCamelCase(bare!),
    ...(scope ? [toCamelCase(`${scope}-${bare}`)] : []),
    toCamelCase(`npm-${bare}`),
  ];
  return candidates.find(isUsableGlobalName) ?? `npm_${candidates[0]!.replace(/\W/g, "_")}`;
}
