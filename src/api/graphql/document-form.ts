/**
 * Limits the size and depth of a GraphQL document before it is validated, because the time of validation grows with the square of some of
 * these numbers.
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

/** Limits of a document. A hand-written document has a few dozen of each, and GraphiQL's own introspection has 15 levels. */
export const FORM_LIMITS = {
  fields: 1_000,
  "levels of fields": 20,
  "fields of its operation": 100,
  "fields that are asked for twice in one place": 20,
  operations: 50,
  fragments: 50,
  "uses of fragments": 200,
  "levels of a value": JSON_MAX_DEPTH,
  directives: 100,
  variables: 100,
} as const;

type FormLimit = keyof typeof FORM_LIMITS;

/**
 * True if a value is nested deeper than `levels`. Validation walks values by recursion, and a deep value overflows its stack, which takes
 * long.
 */
function nestsDeeper(value: ValueNode, levels: number): boolean {
  if (value.kind === Kind.LIST) return levels === 0 || value.values.some((inner) => nestsDeeper(inner, levels - 1));
  if (value.kind !== Kind.OBJECT) return false;
  return levels === 0 || value.fields.some((field) => nestsDeeper(field.value, levels - 1));
}

/** Counts the parts of a document. Throws when a limit is exceeded. */
class DocumentForm {
  private readonly counts = new Map<FormLimit, number>();

  count(limitName: FormLimit, more = 1): void {
    const count = (this.counts.get(limitName) ?? 0) + more;
    this.counts.set(limitName, count);
    this.within(limitName, count);
  }

  within(limitName: FormLimit, count: number): void {
    if (count > FORM_LIMITS[limitName]) {
      throw new GraphQLError(`a document has at most ${FORM_LIMITS[limitName]} ${limitName}`);
    }
  }

  value(value: ValueNode | undefined): void {
    const levels = FORM_LIMITS["levels of a value"];
    if (value && nestsDeeper(value, levels)) this.within("levels of a value", levels + 1);
  }

  directives(directives: readonly DirectiveNode[] | undefined): void {
    this.count("directives", directives?.length ?? 0);
    for (const { arguments: input } of directives ?? []) this.arguments(input);
  }

  private arguments(input: readonly ArgumentNode[] | undefined): void {
    for (const { value } of input ?? []) this.value(value);
  }

  /** Walks the selections as they are written. A fragment is counted once, at its definition. */
  walk({ selections }: SelectionSetNode, level: number, names: Set<string>): void {
    this.within("levels of fields", level);
    for (const selection of selections) {
      this.directives(selection.directives);
      if (selection.kind === Kind.FRAGMENT_SPREAD) this.count("uses of fragments");
      else if (selection.kind === Kind.FIELD) this.field(selection, level, names);
      // The fields of an inline fragment are on the level of the fields around it.
      else this.walk(selection.selectionSet, level + 1, names);
    }
  }

  private field(node: FieldNode, level: number, names: Set<string>): void {
    const { alias, name, selectionSet } = node;
    this.count("fields");
    this.arguments(node.arguments);
    const key = (alias ?? name).value;
    if (names.has(key)) this.count("fields that are asked for twice in one place");
    names.add(key);
    if (selectionSet) this.walk(selectionSet, level + 1, new Set());
  }
}

function singleOperationOf(
  form: DocumentForm,
  { selectionSet, variableDefinitions, directives }: OperationDefinitionNode,
): void {
  form.count("operations");
  form.count("variables", variableDefinitions?.length ?? 0);
  for (const variable of variableDefinitions ?? []) {
    form.value(variable.defaultValue);
    form.directives(variable.directives);
  }
  form.directives(directives);
  form.walk(selectionSet, 1, new Set());
}

/** @throws GraphQLError that names the exceeded limit */
export function checkForm({ definitions }: DocumentNode): void {
  const form = new DocumentForm();
  for (const definition of definitions) {
    if (definition.kind === Kind.OPERATION_DEFINITION) singleOperationOf(form, definition);
    else if (definition.kind === Kind.FRAGMENT_DEFINITION) {
      form.count("fragments");
      form.directives(definition.directives);
      form.walk(definition.selectionSet, 1, new Set());
    }
  }
}
