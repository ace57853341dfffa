/** The form of a GraphQL document, judged before it is validated: validation itself takes time by the square of some of these numbers. Knows no schema. */
import {
  type DocumentNode,
  type FieldNode,
  GraphQLError,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from "graphql";

/** A hand-written document has some tens of each, and GraphiQL's own has 15 levels. */
export const FORM_LIMITS = {
  fields: 1_000,
  "levels of fields": 20,
  "fields of its operation": 100,
  "fields that are asked for twice in one place": 20,
  operations: 50,
  fragments: 50,
  "uses of fragments": 200,
  directives: 100,
  variables: 100,
} as const;

type Bound = keyof typeof FORM_LIMITS;

/** Counts, and throws at the first that is too many. */
class Form {
  private readonly counts = new Map<Bound, number>();

  count(what: Bound, more = 1): void {
    const count = (this.counts.get(what) ?? 0) + more;
    this.counts.set(what, count);
    this.within(what, count);
  }

  within(what: Bound, count: number): void {
    if (count > FORM_LIMITS[what]) {
      throw new GraphQLError(`a document holds at most ${FORM_LIMITS[what]} ${what}`);
    }
  }

  /** Walks what is written; fragments are counted where they are defined. */
  walk({ selections }: SelectionSetNode, level: number, names: Set<string>): void {
    this.within("levels of fields", level);
    for (const selection of selections) {
      this.count("directives", selection.directives?.length ?? 0);
      if (selection.kind === Kind.FRAGMENT_SPREAD) this.count("uses of fragments");
      else if (selection.kind === Kind.FIELD) this.field(selection, level, names);
      // An inline fragment's fields stand beside those around it.
      else this.walk(selection.selectionSet, level + 1, names);
    }
  }

  private field({ alias, name, selectionSet }: FieldNode, level: number, names: Set<string>): void {
    this.count("fields");
    const key = (alias ?? name).value;
    if (names.has(key)) this.count("fields that are asked for twice in one place");
    names.add(key);
    if (selectionSet) this.walk(selectionSet, level + 1, new Set());
  }
}

function operation(form: Form, { selectionSet, variableDefinitions, directives }: OperationDefinitionNode): void {
  form.count("operations");
  form.count("variables", variableDefinitions?.length ?? 0);
  form.count("directives", directives?.length ?? 0);
  form.walk(selectionSet, 1, new Set());
}

/** @throws GraphQLError that names the limit which the document passes */
export function judgeForm({ definitions }: DocumentNode): void {
  const form = new Form();
  for (const definition of definitions) {
    if (definition.kind === Kind.OPERATION_DEFINITION) operation(form, definition);
    else if (definition.kind === Kind.FRAGMENT_DEFINITION) {
      form.count("fragments");
      form.count("directives", definition.directives?.length ?? 0);
      form.walk(definition.selectionSet, 1, new Set());
    }
  }
}
