/** What a network isolate has by name and cannot carry: code that uses it so runs in a document. Analyzes parsed code for mode.ts. */
import type { AnyNode, Identifier, Program } from "acorn";
import { fullAncestor } from "acorn-walk";

/**
 * Objects of the platform that weigh kilobytes there. V8 counts them late and collects them in steps, and the last step ends an isolate's page
 * while its code runs (chromium-flags.ts): 250,000 streams did, or a million event targets.
 */
const HEAVY = new Set(
  (
    "AbortController AbortSignal Blob CompressionStream DecompressionStream EventTarget File FormData Headers ReadableStream Request Response " +
    "TextDecoderStream TextEncoderStream TransformStream WritableStream"
  ).split(" "),
);
const READERS = ["getReader", "ReadableStreamDefaultReader", "ReadableStreamBYOBReader"];
const LOOPS = ["ForStatement", "ForInStatement", "ForOfStatement", "WhileStatement", "DoWhileStatement"];
const FUNCTIONS = ["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"];

const isNamed = (node: AnyNode | null | undefined, name: string): boolean =>
  node?.type === "Identifier" && node.name === name;

/** True if the function is the `execute` of the code, which is called once. */
function isExecute(node: AnyNode, parent: AnyNode | undefined): boolean {
  if (node.type === "FunctionDeclaration") return isNamed(node.id, "execute");
  return parent?.type === "VariableDeclarator" && isNamed(parent.id, "execute");
}

/** True if the last of `path` is in a loop, or in a function that may be called more than once. */
function mayRepeat(path: readonly AnyNode[]): boolean {
  return path.some(
    (node, at) => LOOPS.includes(node.type) || (FUNCTIONS.includes(node.type) && !isExecute(node, path[at - 1])),
  );
}

/** True if a heavy class makes at most one object where it is named. A class that is passed on may make any number. */
function isUsedOnce(path: readonly AnyNode[]): boolean {
  const [parent, node] = path.slice(-2) as [AnyNode, AnyNode];
  if (parent.type === "BinaryExpression") return parent.operator === "instanceof" && parent.right === node;
  if (parent.type === "UnaryExpression") return parent.operator === "typeof";
  const makesOne =
    (parent.type === "NewExpression" && parent.callee === node) ||
    (parent.type === "MemberExpression" && parent.object === node);
  return makesOne && !mayRepeat(path);
}

/** The names that a node reads of an object. */
function membersRead(node: AnyNode): string[] {
  if (node.type === "MemberExpression") return node.property.type === "Identifier" ? [node.property.name] : [];
  if (node.type !== "ObjectPattern") return [];
  return node.properties.flatMap((one) =>
    one.type === "Property" && one.key.type === "Identifier" ? [one.key.name] : [],
  );
}

/**
 * True if the code may make many heavy objects, or reads `closed` of a stream's reader: a stream of an isolate has the next part, or the
 * failure, of the platform's stream when it is read, so that `closed` without a read would never settle.
 */
export function exceedsNetworkIsolate(program: Program): boolean {
  const read = new Set<string>();
  let makesMany = false;
  fullAncestor(program, (node, _state, ancestors) => {
    for (const name of membersRead(node as AnyNode)) read.add(name);
    if (node.type !== "Identifier") return;
    const { name } = node as Identifier;
    if (READERS.includes(name)) read.add(name);
    makesMany ||= HEAVY.has(name) && !isUsedOnce(ancestors as AnyNode[]);
  });
  return makesMany || (read.has("closed") && READERS.some((reader) => read.has(reader)));
}
