/**
 * Whether code can do without a document: judged by the names that it uses, since it may be given no others. Parses, and never
 * runs a character.
 */
import { type AnyNode, type AssignmentProperty, type Program, type Property, parse } from "acorn";
import { fullAncestor } from "acorn-walk";
import { analyze } from "eslint-scope";

/** Looking at code costs time that grows faster than the code, and every other run waits for it. */
const LOOKED_AT_MAX_CHARACTERS = 16_384;
/** Ways to names that do not stand in the code. */
const DYNAMIC = ["globalThis", "eval", "Function"];

/** Judges code by the globals that it would find. What it remembers of judged code is bounded. */
export function createPlainCode(globals: readonly string[], remembered = 500): (code: string) => boolean {
  const known = new Set(globals.filter((name) => !DYNAMIC.includes(name)));
  const judged = new Map<string, boolean>();
  return (code) => {
    const before = judged.get(code);
    if (before !== undefined) return before;
    const plain = isPlain(code, known);
    if (judged.size >= remembered) judged.delete(judged.keys().next().value!);
    judged.set(code, plain);
    return plain;
  };
}

function isPlain(code: string, known: ReadonlySet<string>): boolean {
  if (code.length > LOOKED_AT_MAX_CHARACTERS) return false;
  try {
    const program = parse(code, { ecmaVersion: "latest", sourceType: "script", ranges: true });
    return !reachesBeyond(program) && undeclaredNames(program).every((name) => known.has(name));
  } catch {
    // What cannot be read is not judged; the run says what is wrong with it.
    return false;
  }
}

function undeclaredNames(program: Program): string[] {
  const { globalScope } = analyze(program as Parameters<typeof analyze>[0], {
    ecmaVersion: 2024,
    sourceType: "script",
  });
  return globalScope!.through.map(({ identifier }) => identifier.name);
}

/** Whether the code reaches what no name in it stands for: modules, the global object as `this`, functions made of text. */
function reachesBeyond(program: Program): boolean {
  let found = false;
  fullAncestor(program, (node, _state, ancestors) => {
    found ||= isDoor(node as AnyNode, ancestors as AnyNode[]);
  });
  return found;
}

function isDoor(node: AnyNode, ancestors: readonly AnyNode[]): boolean {
  switch (node.type) {
    case "ImportExpression":
    case "WithStatement":
      return true;
    case "ThisExpression":
      return !isOwnThis(ancestors);
    case "Literal":
      return node.value === "constructor";
    case "MemberExpression":
      return !node.computed && node.property.type === "Identifier" && node.property.name === "constructor";
    case "ObjectPattern":
      return node.properties.some((property) => property.type === "Property" && keyOf(property) === "constructor");
    default:
      return false;
  }
}

function keyOf({ key }: Property | AssignmentProperty): unknown {
  if (key.type === "Identifier") return key.name;
  return key.type === "Literal" ? key.value : undefined;
}

/** Whether a `this` is an object's own: in a class, or in a method of an object. */
function isOwnThis(ancestors: readonly AnyNode[]): boolean {
  const index = ancestors.findLastIndex(
    ({ type }) => type === "FunctionDeclaration" || type === "FunctionExpression" || type === "ClassBody",
  );
  if (index < 1) return false;
  if (ancestors[index]!.type === "ClassBody") return true;
  const holder = ancestors[index - 1]!;
  return (
    holder.type === "MethodDefinition" || (holder.type === "Property" && (holder.method || holder.kind !== "init"))
  );
}
