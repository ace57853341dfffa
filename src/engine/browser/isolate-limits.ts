/** Detects code that uses globals in ways that a network isolate does not support. Such code runs in a document (an empty page). */
import type { AnyNode } from "acorn";

/** Many objects of these classes cause an incremental garbage collection, which can crash an isolate (chromium-flags.ts). */
const HEAVY_CLASSES = new Set(
  "AbortController AbortSignal Blob Event EventTarget File FormData Headers Request Response".split(" "),
);
/**
 * A network isolate has no blob URLs, because they would belong to its worker thread instead of the run. A reader with the mode "byob" does
 * not work in an isolate, because it would transfer a buffer of the realm to the worker.
 */
const UNSUPPORTED_NAMES: readonly unknown[] = ["createObjectURL", "revokeObjectURL", "byob"];
/** Members of `performance` that a network isolate has. It lacks the others, because they contain data of all runs of the thread. */
const CLOCK_MEMBERS: readonly unknown[] = ["now", "timeOrigin"];
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

/** True if a run creates at most one object through this use of a class. `path`: syntax nodes around the class name, then its node. */
function createsAtMostOneObject(path: readonly AnyNode[]): boolean {
  const [parent, node] = path.slice(-2) as [AnyNode, AnyNode];
  if (parent.type === "BinaryExpression") return parent.operator === "instanceof" && parent.right === node;
  if (parent.type === "UnaryExpression") return parent.operator === "typeof";
  const isSingleUse =
    (parent.type === "NewExpression" && parent.callee === node) ||
    (parent.type === "MemberExpression" && parent.object === node);
  return isSingleUse && !mayRunRepeatedly(path);
}

function readPropertyKey(key: AnyNode): unknown {
  if (key.type === "Identifier") return key.name;
  return key.type === "Literal" ? key.value : undefined;
}

/** Returns the names of the members that this node reads. A literal counts too, because it may be a name, as in `object["name"]`. */
export function findReadMembers(node: AnyNode): readonly unknown[] {
  if (node.type === "Literal") return [node.value];
  if (node.type === "TemplateElement") return [node.value.cooked];
  if (node.type === "MemberExpression") return node.computed ? [] : [readPropertyKey(node.property)];
  if (node.type !== "ObjectPattern") return [];
  return node.properties.flatMap((property) => (property.type === "Property" ? [readPropertyKey(property.key)] : []));
}

/** True if code uses an unsupported name, or may create many heavy objects. `path`: syntax nodes around the node, then the node. */
export function needsMoreThanNetworkIsolate(node: AnyNode, path: readonly AnyNode[]): boolean {
  if (node.type !== "Identifier") return findReadMembers(node).some((name) => UNSUPPORTED_NAMES.includes(name));
  if (node.name === "performance") return !findReadMembers(path.at(-2)!).some((name) => CLOCK_MEMBERS.includes(name));
  return HEAVY_CLASSES.has(node.name) && !createsAtMostOneObject(path);
}
