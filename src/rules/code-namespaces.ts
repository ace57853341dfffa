/** Finds the properties of the global `Svc` that a syntax tree uses. */
import type { AnyNode, Pattern, Program } from "acorn";
import { literalKey, lookUp, nodesWithScopes, type Scope } from "./code-scopes.js";

/** A use of `Svc.<namespace>`, with its position in the source. */
export interface NamespaceUse {
  namespace: string;
  offset: number;
}

/** Value of an expression: the library `Svc`, the global object, or null for anything else. */
type NodeMeaning = "Svc" | "global" | null;

const GLOBAL_OBJECTS: ReadonlySet<string> = new Set(["window", "globalThis", "self"]);

/** Types of syntax nodes that can name a property of `Svc`: see {@link usesAt}. */
const NAMESPACE_NODES: ReadonlySet<string> = new Set([
  "MemberExpression",
  "VariableDeclarator",
  "AssignmentExpression",
  "AssignmentPattern",
]);

/**
 * Maximum length of a chain such as `window.window.Svc` that is followed. Generated code may have chains of a hundred
 * thousand members.
 */
const STEPS_MAX = 8;

/**
 * Returns the properties of `Svc` that the code uses, in the order of the source. Recognizes member access, optional
 * chaining, destructuring, and variables with the value `Svc`. Ignores a variable `Svc` that the code itself declares.
 */
export function namespaceUses(program: Program): NamespaceUse[] {
  const uses: NamespaceUse[] = [];
  for (const { node, scope } of nodesWithScopes(program, NAMESPACE_NODES)) uses.push(...usesAt(node, scope));
  return uses.sort((a, b) => a.offset - b.offset);
}

function usesAt(node: AnyNode, scope: Scope): NamespaceUse[] {
  switch (node.type) {
    case "MemberExpression": {
      const namespace = literalKey(node.property, node.computed);
      if (namespace === null || nodeMeaning(node.object, scope) !== "Svc") return [];
      return [{ namespace, offset: node.property.start }];
    }
    case "VariableDeclarator":
      return node.init ? destructuredUses(node.id, meaningOf(node.id, node.init, scope)) : [];
    case "AssignmentExpression":
      return node.operator === "=" ? destructuredUses(node.left, meaningOf(node.left, node.right, scope)) : [];
    case "AssignmentPattern":
      return destructuredUses(node.left, meaningOf(node.left, node.right, scope));
    default:
      return [];
  }
}

function meaningOf(target: AnyNode, value: AnyNode, scope: Scope): NodeMeaning {
  return target.type === "ObjectPattern" ? nodeMeaning(value, scope) : null;
}

function destructuredUses(target: Pattern | AnyNode, from: NodeMeaning): NamespaceUse[] {
  if (target.type !== "ObjectPattern" || from === null) return [];
  return target.properties.flatMap((property) => {
    if (property.type !== "Property") return [];
    const key = literalKey(property.key, property.computed);
    if (key === null) return [];
    if (from === "Svc") return [{ namespace: key, offset: property.key.start }];
    const value = property.value.type === "AssignmentPattern" ? property.value.left : property.value;
    return destructuredUses(value, propertyOfGlobal(key));
  });
}

function propertyOfGlobal(key: string): NodeMeaning {
  if (key === "Svc") return "Svc";
  return GLOBAL_OBJECTS.has(key) ? "global" : null;
}

function nodeMeaning(node: AnyNode, scope: Scope, steps = 0): NodeMeaning {
  if (steps > STEPS_MAX) return null;
  switch (node.type) {
    case "Identifier": {
      const binding = lookUp(scope, node.name);
      if (binding === undefined) return propertyOfGlobal(node.name);
      if (binding === null) return null;
      const value = nodeMeaning(binding.value, binding.scope, steps + 1);
      if (binding.key === null) return value;
      return value === "global" ? propertyOfGlobal(binding.key) : null;
    }
    case "MemberExpression": {
      const key = literalKey(node.property, node.computed);
      if (key === null || propertyOfGlobal(key) === null) return null;
      return nodeMeaning(node.object, scope, steps + 1) === "global" ? propertyOfGlobal(key) : null;
    }
    case "ChainExpression":
      return nodeMeaning(node.expression, scope, steps + 1);
    default:
      return null;
  }
}
