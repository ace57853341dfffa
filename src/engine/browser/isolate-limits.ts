/** Detects code that uses globals in ways that a network isolate does not support. Such code runs in a document (an empty page). */
import type { AnyNode, Identifier, Literal, Program } from "acorn";
import { fullAncestor } from "acorn-walk";

/** Many objects of these classes cause an incremental garbage collection, which can crash an isolate (chromium-flags.ts). */
const HEAVY_CLASSES = new Set(
  "AbortController AbortSignal Blob EventTarget File FormData Headers Request Response".split(" "),
);
/**
 * A network isolate has no blob URLs, because they would belong to its worker thread instead of the run. It can pass only streams of the
 * worker to other functions, and `tee` creates other streams.
 */
const UNSUPPORTED_MEMBERS = ["createObjectURL", "revokeObjectURL", "tee"];
/** `getReader({ mode: "byob" })` does not work in an isolate, because response bodies are no byte streams there. */
const UNSUPPORTED_TEXT = "byob";
const LOOP_NODE_TYPES = ["ForStatement", "ForInStatement", "ForOfStatement", "WhileStatement", "DoWhileStatement"];
const FUNCTION_NODE_TYPES = ["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"];

const isIdentifierNamed = (node: AnyNode | null | undefined, name: string): boolean =>
  node?.type === "Identifier" && node.name === name;

/** True for the `execute` function of an action, which is called once. */
function isExecuteFunction(node: AnyNode, parent: AnyNode | undefined): boolean {
  if (node.type === "FunctionDeclaration") return isIdentifierNamed(node.id, "execute");
  return parent?.type === "VariableDeclarator" && isIdentifierNamed(parent.id, "execute");
}

function mayRunRepeatedly(path: readonly AnyNode[]): boolean {
  return path.some(
    (node, index) =>
      LOOP_NODE_TYPES.includes(node.type) ||
      (FUNCTION_NODE_TYPES.includes(node.type) && !isExecuteFunction(node, path[index - 1])),
  );
}

/** `path` ends with a class name. True if this use of the class creates no object, or only one in the run. */
function createsAtMostOne(path: readonly AnyNode[]): boolean {
  const [parent, node] = path.slice(-2) as [AnyNode, AnyNode];
  if (parent.type === "BinaryExpression") return parent.operator === "instanceof" && parent.right === node;
  if (parent.type === "UnaryExpression") return parent.operator === "typeof";
  const isSingleUse =
    (parent.type === "NewExpression" && parent.callee === node) ||
    (parent.type === "MemberExpression" && parent.object === node);
  return isSingleUse && !mayRunRepeatedly(path);
}

function findReadMembers(node: AnyNode): string[] {
  if (node.type === "MemberExpression") return node.property.type === "Identifier" ? [node.property.name] : [];
  if (node.type !== "ObjectPattern") return [];
  return node.properties.flatMap((property) =>
    property.type === "Property" && property.key.type === "Identifier" ? [property.key.name] : [],
  );
}

/** True if code uses an unsupported member, may create many heavy objects, or reads a reader's `closed`, which might never settle. */
export function needsMoreThanNetworkIsolate(program: Program): boolean {
  const readMembers = new Set<string>();
  let isUnsupported = false;
  let mayCreateMany = false;
  fullAncestor(program, (node, _state, ancestors) => {
    for (const name of findReadMembers(node as AnyNode)) readMembers.add(name);
    isUnsupported ||= (node as AnyNode).type === "Literal" && (node as Literal).value === UNSUPPORTED_TEXT;
    if (node.type !== "Identifier") return;
    const { name } = node as Identifier;
    mayCreateMany ||= HEAVY_CLASSES.has(name) && !createsAtMostOne(ancestors as AnyNode[]);
  });
  if (isUnsupported || UNSUPPORTED_MEMBERS.some((member) => readMembers.has(member))) return true;
  return mayCreateMany || (readMembers.has("closed") && readMembers.has("getReader"));
}
