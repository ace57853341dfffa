/**
 * Limits the size and depth of a GraphQL document before the service validates it. The time of validation grows with
 * the square of some of these numbers.
 */
import {
  type ArgumentNode,
  type DirectiveNode,
  type DocumentNode,
  type FieldNode,
  GraphQLError,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValueNode,
} from "graphql";
import { JSON_MAX_DEPTH } from "../../limits.js";

/** Limits of a document, by the name of what is counted. The introspection query of GraphiQL has 15 levels of fields. */
export const GRAPHQL_DOCUMENT_LIMITS = {
  fields: 1_000,
  "levels of fields": 20,
  "root fields of its operation": 100,
  "fields that one selection set repeats": 20,
  operations: 50,
  fragments: 50,
  "uses of its fragments": 200,
  "levels of nesting in a value": JSON_MAX_DEPTH,
  directives: 100,
  variables: 100,
} as const;

type DocumentLimitName = keyof typeof GRAPHQL_DOCUMENT_LIMITS;

/** True if a value is nested deeper than `levels`. Validation visits values by recursion, so a very deep value would overflow the stack. */
function isNestedDeeper(value: ValueNode, levels: number): boolean {
  if (value.kind === Kind.LIST) return levels === 0 || value.values.some((inner) => isNestedDeeper(inner, levels - 1));
  if (value.kind !== Kind.OBJECT) return false;
  return levels === 0 || value.fields.some((field) => isNestedDeeper(field.value, levels - 1));
}

/** Counts the parts of a document, and throws an error when a part exceeds its limit in GRAPHQL_DOCUMENT_LIMITS. */
class DocumentLimitChecker {
  private readonly counts = new Map<DocumentLimitName, number>();

  addToCount(limitName: DocumentLimitName, increment = 1): void {
    const count = (this.counts.get(limitName) ?? 0) + increment;
    this.counts.set(limitName, count);
    this.checkLimit(limitName, count);
  }

  checkLimit(limitName: DocumentLimitName, count: number): void {
    if (count > GRAPHQL_DOCUMENT_LIMITS[limitName]) {
      throw new GraphQLError(`a GraphQL document can have at most ${GRAPHQL_DOCUMENT_LIMITS[limitName]} ${limitName}`);
    }
  }

  checkValueDepth(value: ValueNode | undefined): void {
    const levels = GRAPHQL_DOCUMENT_LIMITS["levels of nesting in a value"];
    if (value && isNestedDeeper(value, levels)) this.checkLimit("levels of nesting in a value", levels + 1);
  }

  countDirectives(directives: readonly DirectiveNode[] | undefined): void {
    this.addToCount("directives", directives?.length ?? 0);
    for (const { arguments: input } of directives ?? []) this.checkArguments(input);
  }

  private checkArguments(argumentNodes: readonly ArgumentNode[] | undefined): void {
    for (const { value } of argumentNodes ?? []) this.checkValueDepth(value);
  }

  /** Counts the selected fields. A fragment is counted once, at its definition, not at each use. */
  countSelections({ selections }: SelectionSetNode, level: number, selectedNames: Set<string>): void {
    this.checkLimit("levels of fields", level);
    for (const selection of selections) {
      this.countDirectives(selection.directives);
      if (selection.kind === Kind.FRAGMENT_SPREAD) this.addToCount("uses of its fragments");
      else if (selection.kind === Kind.FIELD) this.countField(selection, level, selectedNames);
      // An inline fragment counts as a level. Its fields share `selectedNames` with the fields around it, so that repeated fields are counted.
      else this.countSelections(selection.selectionSet, level + 1, selectedNames);
    }
  }

  private countField(node: FieldNode, level: number, selectedNames: Set<string>): void {
    const { alias, name, selectionSet } = node;
    this.addToCount("fields");
    this.checkArguments(node.arguments);
    const key = (alias ?? name).value;
    if (selectedNames.has(key)) this.addToCount("fields that one selection set repeats");
    selectedNames.add(key);
    if (selectionSet) this.countSelections(selectionSet, level + 1, new Set());
  }
}

function checkOperation(
  limitChecker: DocumentLimitChecker,
  { selectionSet, variableDefinitions, directives }: OperationDefinitionNode,
): void {
  limitChecker.addToCount("operations");
  limitChecker.addToCount("variables", variableDefinitions?.length ?? 0);
  for (const variable of variableDefinitions ?? []) {
    limitChecker.checkValueDepth(variable.defaultValue);
    limitChecker.countDirectives(variable.directives);
  }
  limitChecker.countDirectives(directives);
  limitChecker.countSelections(selectionSet, 1, new Set());
}

/**
 * Checks the size and depth of a document.
 * @throws GraphQLError that names the exceeded limit
 */
export function checkDocumentLimits({ definitions }: DocumentNode): void {
  const limitChecker = new DocumentLimitChecker();
  for (const definition of definitions) {
    if (definition.kind === Kind.OPERATION_DEFINITION) checkOperation(limitChecker, definition);
    else if (definition.kind === Kind.FRAGMENT_DEFINITION) {
      limitChecker.addToCount("fragments");
      limitChecker.countDirectives(definition.directives);
      limitChecker.countSelections(definition.selectionSet, 1, new Set());
    }
  }
}
