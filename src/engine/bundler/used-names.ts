/** Finds the global names that a script uses, and the missing modules without which it cannot load. */
import { type AnyNode, type Program, parse } from "acorn";
import { fullAncestor } from "acorn-walk";
import { analyze } from "eslint-scope";
import globals from "globals";

/** Stands for a dynamic import in the result of `findUsedGlobalNames`. It is not the name of a global. */
const IMPORT_CALL_NAME = "import()";
/** Stands for code that is created from text, in the result of `findUsedGlobalNames`. */
const EVAL_CALL_NAME = "eval()";
const CODE_CREATING_GLOBALS = ["eval", "Function"];
/** For this global, `findUsedGlobalNames` returns each used member, because most scripts only read members that identify the browser. */
const NAVIGATOR = "navigator";

/** Returns the global names that a script uses, sorted. Leaves out names that it only tests with `typeof`: it works without them. */
export function findUsedGlobalNames(program: Program): string[] {
  const scopes = analyze(program as Parameters<typeof analyze>[0], { ecmaVersion: 2024, sourceType: "script" });
  const typeofOperands = new Set<unknown>();
  const reachedNames = new Set<string>();
  const members = new Map<unknown, string>();
  let hasImportCall = false;
  fullAncestor(program, (node) => {
    const syntaxNode = node as AnyNode;
    if (syntaxNode.type === "UnaryExpression" && syntaxNode.operator === "typeof")
      typeofOperands.add(syntaxNode.argument);
    hasImportCall ||= syntaxNode.type === "ImportExpression";
    if (syntaxNode.type === "MemberExpression" && !syntaxNode.computed && syntaxNode.property.type === "Identifier") {
      if (syntaxNode.object.type === "Identifier" && syntaxNode.object.name === NAVIGATOR)
        members.set(syntaxNode.object, `${NAVIGATOR}.${syntaxNode.property.name}`);
    }
    const name = readGlobalObjectMember(syntaxNode);
    if (name !== null) reachedNames.add(name);
  });
  const names = scopes.globalScope!.through.filter(({ identifier }) => !typeofOperands.has(identifier));
  const usedNames = names.map(({ identifier }) => members.get(identifier) ?? identifier.name);
  const createsCode = createsCodeFromText(
    program,
    new Set(scopes.globalScope!.through.map(({ identifier }) => identifier)),
  );
  return [
    ...new Set([
      ...usedNames,
      ...reachedNames,
      ...(hasImportCall ? [IMPORT_CALL_NAME] : []),
      ...(createsCode ? [EVAL_CALL_NAME] : []),
    ]),
  ].sort();
}

/** True if the script creates code from text. Ignores code inside a `try` with `catch`, and calls that only return the global object. */
function createsCodeFromText(program: Program, undeclaredNodes: ReadonlySet<unknown>): boolean {
  let isFound = false;
  fullAncestor(program, (node, _state, ancestors) => {
    const syntaxNode = node as AnyNode;
    if (
      (syntaxNode.type !== "CallExpression" && syntaxNode.type !== "NewExpression") ||
      syntaxNode.callee.type !== "Identifier"
    )
      return;
    if (!CODE_CREATING_GLOBALS.includes(syntaxNode.callee.name) || !undeclaredNodes.has(syntaxNode.callee)) return;
    const [text] = syntaxNode.arguments;
    const returnsGlobalObject = text?.type === "Literal" && /^\s*return this;?\s*$/.test(String(text.value));
    isFound ||= !returnsGlobalObject && !isInsideTry(ancestors as AnyNode[]);
  });
  return isFound;
}

function isInsideTry(ancestors: readonly AnyNode[]): boolean {
  return ancestors.some(
    (node, index) => node.type === "TryStatement" && node.handler && node.block === ancestors[index + 1],
  );
}

/**
 * If the node reads a global of browsers from `globalThis`, such as `globalThis.alert`, returns the global's name; otherwise null. esbuild
 * has already replaced `self` by `globalThis`.
 */
function readGlobalObjectMember(node: AnyNode): string | null {
  if (node.type !== "MemberExpression" || node.computed || node.property.type !== "Identifier") return null;
  const { object, property } = node;
  const isGlobal = object.type === "Identifier" && object.name === "globalThis";
  return isGlobal && Object.hasOwn(globals.browser, property.name) ? property.name : null;
}

/** Function with which esbuild loads modules that are not in the bundle. */
const ESBUILD_REQUIRE = "__require";
const ESBUILD_WRAPPERS = new Set(["__commonJS", "__esm", "__commonJSMin", "__esmMin"]);

function isUnconditional(ancestors: readonly AnyNode[]): boolean {
  for (let at = ancestors.length - 2; at >= 0; at -= 1) {
    const node = ancestors[at]!;
    const child = ancestors[at + 1]!;
    switch (node.type) {
      case "TryStatement":
        if (node.block === child) return false;
        break;
      case "IfStatement":
      case "ConditionalExpression":
        if (node.test !== child) return false;
        break;
      case "LogicalExpression":
        if (node.right === child) return false;
        break;
      case "FunctionDeclaration":
      case "FunctionExpression":
      case "ArrowFunctionExpression":
        if (!isModuleWrapper(ancestors, at)) return false;
        break;
      default:
    }
  }
  return true;
}

/** True if the function at `index` of `ancestors` is the body of a module or of the whole script. */
function isModuleWrapper(ancestors: readonly AnyNode[], index: number): boolean {
  const outerNodes = ancestors.slice(0, index).reverse();
  const functionIndex = outerNodes.findIndex(({ type }) => type.includes("Function"));
  if (functionIndex < 0) return true;
  const call = outerNodes.slice(0, functionIndex).find(({ type }) => type === "CallExpression");
  return call?.type === "CallExpression" && call.callee.type === "Identifier" && ESBUILD_WRAPPERS.has(call.callee.name);
}

/** Returns the modules that the script needs to load, but that are not in the bundle, such as modules of Node. */
export function findRequiredModules(program: Program): string[] {
  const names = new Set<string>();
  fullAncestor(program, (node, _state, path) => {
    const call = node as AnyNode;
    if (call.type !== "CallExpression" || call.callee.type !== "Identifier" || call.callee.name !== ESBUILD_REQUIRE)
      return;
    const [argument] = call.arguments;
    if (argument?.type !== "Literal" || typeof argument.value !== "string") return;
    if (isUnconditional(path as AnyNode[])) names.add(argument.value);
  });
  return [...names];
}

export const parsePackageScript = (source: string): Program =>
  parse(source, { ecmaVersion: "latest", sourceType: "script", ranges: true });
