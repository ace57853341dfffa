/** Detects code that uses globals in ways that a network isolate does not support. Such code runs in a document (an empty page). */
import type { AnyNode, Identifier, Literal, Program } from "acorn";
import { fullAncestor } from "acorn-walk";

/** Many objects of these classes cause an incremental garbage collection, which can crash an isolate (chromium-flags.ts). */
const HEAVY_CLASSES = new Set(
  "AbortController AbortSignal Blob Event EventTarget File FormData Headers Request Response".split(" "),
);
/** A network isolate has no blob URLs, because they would belong to its worker thread instead of the run. */
const UNSUPPORTED_MEMBERS = ["createObjectURL", "revokeObjectURL"];
/** `getReader({ mode: "byob" })` does not work in an isolate, because it would transfer a buffer of the realm to the worker. */
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

/** True if a run creates at most one object through this use of a class. `path`: syntax nodes around the class name, then its node. */
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

/** True if code uses an unsupported member, or may create many heavy objects. */
export function needsMoreThanNetworkIsolate(program: Program): boolean {
  let isUnsupported = false;
  fullAncestor(program, (node, _state, ancestors) => {
    isUnsupported ||=
      findReadMembers(node as AnyNode).some((name) => UNSUPPORTED_MEMBERS.includes(name)) ||
      (node.type === "Literal" && (node as Literal).value === UNSUPPORTED_TEXT) ||
      (node.type === "Identifier" &&
        HEAVY_CLASSES.has((node as Identifier).name) &&
        !createsAtMostOne(ancestors as AnyNode[]));
  });
  return isUnsupported;
}
