/** Finds the declaration of a name in the lexical scopes of a syntax tree. */
import type { AnyNode, Expression, Pattern } from "acorn";

/**
 * Initial value of a variable: the expression `value` or, if `key` is set, the property `key` of this expression. `scope` is the scope of
 * the expression. null if the initial value is not known.
 */
export type Binding = { value: Expression; key: string | null; scope: LexicalScope } | null;

export interface LexicalScope {
  parent: LexicalScope | null;
  isFunctionScope: boolean;
  names: Map<string, Binding>;
  /**
   * Bindings that were looked up in this scope, by name. Without this cache, each lookup in deeply nested code would visit all outer
   * scopes.
   */
  bindingCache: Map<string, Binding | undefined>;
}

const BLOCK_NODES: ReadonlySet<string> = new Set([
  "BlockStatement",
  "StaticBlock",
  "ForStatement",
  "ForInStatement",
  "ForOfStatement",
  "SwitchStatement",
  "CatchClause",
  "ClassDeclaration",
  "ClassExpression",
]);
const FUNCTION_NODES: ReadonlySet<string> = new Set([
  "FunctionDeclaration",
  "FunctionExpression",
  "ArrowFunctionExpression",
]);

/**
 * Returns the nodes that have one of these types, each with its scope. Does not use recursion, because deep nesting would overflow the
 * stack.
 */
export function collectNodesWithScopes(
  root: AnyNode,
  types: ReadonlySet<string>,
): { node: AnyNode; scope: LexicalScope }[] {
  const nodesWithScopes: { node: AnyNode; scope: LexicalScope }[] = [];
  const pending: { node: AnyNode; outer: LexicalScope }[] = [{ node: root, outer: createScope(null, true) }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { node, outer } = next;
    const scope = createInnerScope(node, outer);
    declareNames(node, outer, scope);
    if (types.has(node.type)) nodesWithScopes.push({ node, scope });
    for (const child of listChildNodes(node)) pending.push({ node: child, outer: scope });
  }
  return nodesWithScopes;
}

/** Returns the binding of a name in a scope or its outer scopes; undefined for a global name, which the code does not declare. */
export function lookUpBinding(scope: LexicalScope, name: string): Binding | undefined {
  if (scope.bindingCache.has(name)) return scope.bindingCache.get(name);
  let binding: Binding | undefined;
  for (
    let currentScope: LexicalScope | null = scope;
    currentScope !== null && binding === undefined;
    currentScope = currentScope.parent
  )
    binding = currentScope.names.get(name);
  scope.bindingCache.set(name, binding);
  return binding;
}

/** Returns the name of the property that the node `key` stands for; null if the code computes this name at run time. */
export function getLiteralKeyName(key: AnyNode, computed: boolean): string | null {
  if (!computed && key.type === "Identifier") return key.name;
  if (key.type === "Literal") return String(key.value);
  if (key.type === "TemplateLiteral" && key.expressions.length === 0) return key.quasis[0]?.value.cooked ?? null;
  return null;
}

function createScope(parent: LexicalScope | null, isFunctionScope: boolean): LexicalScope {
  return { parent, isFunctionScope, names: new Map(), bindingCache: new Map() };
}

function createInnerScope(node: AnyNode, outer: LexicalScope): LexicalScope {
  if (FUNCTION_NODES.has(node.type)) return createScope(outer, true);
  return BLOCK_NODES.has(node.type) ? createScope(outer, false) : outer;
}

function declareNames(node: AnyNode, outer: LexicalScope, inner: LexicalScope): void {
  switch (node.type) {
    case "FunctionDeclaration":
    case "ClassDeclaration":
      if (node.id !== null) outer.names.set(node.id.name, null);
      break;
    case "FunctionExpression":
    case "ClassExpression":
      if (node.id) inner.names.set(node.id.name, null);
      break;
    case "CatchClause":
      if (node.param) bindPattern(node.param, null, inner);
      break;
    case "VariableDeclaration": {
      let target = inner;
      while (node.kind === "var" && !target.isFunctionScope && target.parent !== null) target = target.parent;
      for (const { id, init } of node.declarations)
        bindPattern(id, init ? { value: init, key: null, scope: inner } : null, target);
      break;
    }
    default:
  }
  if (FUNCTION_NODES.has(node.type))
    for (const param of (node as { params: Pattern[] }).params ?? []) bindPattern(param, null, inner);
}

/** Declares the names of a pattern in the scope. Stores initial values only for plain names and one level of object patterns. */
function bindPattern(pattern: Pattern, binding: Binding, scope: LexicalScope): void {
  switch (pattern.type) {
    case "Identifier":
      scope.names.set(pattern.name, binding);
      break;
    case "ObjectPattern":
      for (const property of pattern.properties) {
        if (property.type !== "Property") bindPattern(property.argument, null, scope);
        else {
          const key = getLiteralKeyName(property.key, property.computed);
          bindPattern(
            property.value,
            binding !== null && binding.key === null && key !== null ? { ...binding, key } : null,
            scope,
          );
        }
      }
      break;
    case "ArrayPattern":
      for (const element of pattern.elements) if (element !== null) bindPattern(element, null, scope);
      break;
    case "AssignmentPattern":
      bindPattern(pattern.left, binding, scope);
      break;
    case "RestElement":
      bindPattern(pattern.argument, null, scope);
      break;
    default:
  }
}

function listChildNodes(node: AnyNode): AnyNode[] {
  const childList: AnyNode[] = [];
  for (const value of Object.values(node)) {
    if (isNode(value)) childList.push(value);
    else if (Array.isArray(value)) for (const element of value) if (isNode(element)) childList.push(element);
  }
  return childList;
}

function isNode(value: unknown): value is AnyNode {
  return typeof value === "object" && value !== null && typeof (value as { type?: unknown }).type === "string";
}
