/** Finds which properties of the global `Svc` (the client library) an action's code uses, in the syntax tree of the code. */
import type { AnyNode, Pattern, Program } from "acorn";
import { collectNodesWithScopes, getLiteralKeyName, type LexicalScope, lookUpBinding } from "./code-scopes.js";

/** Use of `Svc.<namespace>` in the source. `offset` is the index of the namespace's name, or of its quotation mark in `Svc["name"]`. */
export interface SvcNamespaceUse {
  namespace: string;
  offset: number;
}

/** Result of resolving an expression: the client library `Svc`, the global object, or null for everything else. */
type ResolvedObject = "Svc" | "global" | null;

const GLOBAL_OBJECTS: ReadonlySet<string> = new Set(["window", "globalThis", "self"]);

const NAMESPACE_NODES: ReadonlySet<string> = new Set([
  "MemberExpression",
  "VariableDeclarator",
  "AssignmentExpression",
  "AssignmentPattern",
]);

/** Maximum number of steps in resolving a chain such as `window.window.Svc`. Generated code may have chains of 100,000 members. */
const RESOLUTION_STEPS_MAX = 8;

/**
 * Returns the properties of `Svc` that the code uses, in the order of the source. Recognizes member access, optional chaining,
 * destructuring, and variables with the value `Svc`. Ignores other variables with the name `Svc`.
 */
export function findSvcNamespaceUses(program: Program): SvcNamespaceUse[] {
  const uses: SvcNamespaceUse[] = [];
  for (const { node, scope } of collectNodesWithScopes(program, NAMESPACE_NODES))
    uses.push(...findUsesInNode(node, scope));
  return uses.sort((a, b) => a.offset - b.offset);
}

function findUsesInNode(node: AnyNode, scope: LexicalScope): SvcNamespaceUse[] {
  switch (node.type) {
    case "MemberExpression": {
      const namespace = getLiteralKeyName(node.property, node.computed);
      if (namespace === null || resolveNode(node.object, scope) !== "Svc") return [];
      return [{ namespace, offset: node.property.start }];
    }
    case "VariableDeclarator":
      return node.init ? findDestructuredUses(node.id, resolveAssignedValue(node.id, node.init, scope)) : [];
    case "AssignmentExpression":
      return node.operator === "="
        ? findDestructuredUses(node.left, resolveAssignedValue(node.left, node.right, scope))
        : [];
    case "AssignmentPattern":
      return findDestructuredUses(node.left, resolveAssignedValue(node.left, node.right, scope));
    default:
      return [];
  }
}

function resolveAssignedValue(target: AnyNode, value: AnyNode, scope: LexicalScope): ResolvedObject {
  return target.type === "ObjectPattern" ? resolveNode(value, scope) : null;
}

function findDestructuredUses(target: Pattern | AnyNode, from: ResolvedObject): SvcNamespaceUse[] {
  if (target.type !== "ObjectPattern" || from === null) return [];
  return target.properties.flatMap((property) => {
    if (property.type !== "Property") return [];
    const key = getLiteralKeyName(property.key, property.computed);
    if (key === null) return [];
    if (from === "Svc") return [{ namespace: key, offset: property.key.start }];
    const value = property.value.type === "AssignmentPattern" ? property.value.left : property.value;
    return findDestructuredUses(value, resolveGlobalProperty(key));
  });
}

function resolveGlobalProperty(key: string): ResolvedObject {
  if (key === "Svc") return "Svc";
  return GLOBAL_OBJECTS.has(key) ? "global" : null;
}

function resolveNode(node: AnyNode, scope: LexicalScope, steps = 0): ResolvedObject {
  if (steps > RESOLUTION_STEPS_MAX) return null;
  switch (node.type) {
    case "Identifier": {
      const binding = lookUpBinding(scope, node.name);
      if (binding === undefined) return resolveGlobalProperty(node.name);
      if (binding === null) return null;
      const value = resolveNode(binding.value, binding.scope, steps + 1);
      if (binding.key === null) return value;
      return value === "global" ? resolveGlobalProperty(binding.key) : null;
    }
    case "MemberExpression": {
      const key = getLiteralKeyName(node.property, node.computed);
      if (key === null || resolveGlobalProperty(key) === null) return null;
      return resolveNode(node.object, scope, steps + 1) === "global" ? resolveGlobalProperty(key) : null;
    }
    case "ChainExpression":
      return resolveNode(node.expression, scope, steps + 1);
    default:
      return null;
  }
}
