/**
 * Estimates how many values a GraphQL operation selects, so that the service rejects an expensive operation before it executes it. A list
 * counts as `limit` items, LIST_ITEMS_PER_PAGE_DEFAULT by default. Inside another list, the default is one item. Expects a valid document.
 */
import {
  type ArgumentNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getIntrospectionQuery,
  getNamedType,
  getNullableType,
  getOperationAST,
  isCompositeType,
  isInterfaceType,
  isListType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  parse,
  SchemaMetaFieldDef,
  type SelectionSetNode,
  TypeMetaFieldDef,
  type ValueNode,
} from "graphql";
import { LIST_ITEMS_PER_PAGE_DEFAULT, LIST_ITEMS_PER_PAGE_MAX } from "../../limits.js";
import { GRAPHQL_DOCUMENT_LIMITS } from "./document-form.js";

/** Maximum number of values that an operation can select. Executing so many values blocks all other requests for about 50 ms. */
export const GRAPHQL_OPERATION_COST_MAX = 30_000;
/** Maximum cost of an introspection query, as a multiple of the cost of the longest query that graphql-js generates. */
const INTROSPECTION_MARGIN = 1.25;
/** Assumed number of items of a list without `limit` inside another list's item, such as an action's triggers. */
const INNER_LIST_ASSUMED_ITEMS = 1;

export type GraphqlVariables = Readonly<Record<string, unknown>> | null | undefined;

/** Size of a GraphQL selection set: the number of values that it selects, and its depth in levels, including fragments. */
interface SelectionSize {
  cost: number;
  depth: number;
}

const EMPTY_SELECTION_SIZE: SelectionSize = { cost: 0, depth: 0 };

/** Returns the assumed number of items of each list field of the introspection types, by "Type.field". */
function estimateIntrospectionListLengths(schema: GraphQLSchema): Record<string, number> {
  const types = Object.values(schema.getTypeMap());
  const fields = types.flatMap((type) =>
    isObjectType(type) || isInterfaceType(type) ? Object.values(type.getFields()) : [],
  );
  const args = fields.reduce((sum, field) => sum + field.args.length, 0);
  return {
    "__Schema.types": types.length,
    "__Schema.directives": schema.getDirectives().length,
    "__Type.fields": Math.max(1, fields.length / types.length),
    "__Type.inputFields": 1,
    "__Type.enumValues": 1,
    "__Type.possibleTypes": 1,
    "__Type.interfaces": 1,
    "__Field.args": Math.max(1, args / fields.length),
    "__Directive.args": 1,
    // Introspection queries select `ofType` many levels deep, but most types are wrapped only once or twice.
    "__Type.ofType": 0.5,
  };
}

function returnsList(type: GraphQLOutputType): boolean {
  return isListType(getNullableType(type));
}

class SelectionSizeEstimator {
  private readonly fragments: Map<string, FragmentDefinitionNode>;
  private readonly sizesByFragment = new Map<string, SelectionSize>();

  constructor(
    private readonly schema: GraphQLSchema,
    private readonly listLengths: Record<string, number>,
    document: DocumentNode,
    private readonly variables: Record<string, unknown>,
  ) {
    const fragmentList = document.definitions.filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION);
    this.fragments = new Map(fragmentList.map((fragment) => [fragment.name.value, fragment]));
  }

  private resolveValue(node: ValueNode): unknown {
    if (node.kind === Kind.VARIABLE) return this.variables[node.name.value];
    if (node.kind === Kind.INT) return Number(node.value);
    if (node.kind !== Kind.OBJECT) return undefined;
    return Object.fromEntries(node.fields.map(({ name, value }) => [name.value, this.resolveValue(value)]));
  }

  /**
   * Returns the argument `limit` or `count` of a field, or the `limit` in its argument `options`, but at most LIST_ITEMS_PER_PAGE_MAX.
   * Returns null if the field has none of them.
   */
  private findLimit(args: readonly ArgumentNode[] | undefined): number | null {
    for (const { name, value } of args ?? []) {
      const input = this.resolveValue(value);
      const limit = name.value === "options" ? (input as { limit?: unknown } | null)?.limit : input;
      if (!["limit", "options", "count"].includes(name.value) || typeof limit !== "number") continue;
      return Math.min(Math.max(limit, 0), LIST_ITEMS_PER_PAGE_MAX);
    }
    return null;
  }

  private findFieldDefinition(parent: GraphQLNamedType, name: string): GraphQLField<unknown, unknown> | undefined {
    if (name === "__schema") return SchemaMetaFieldDef;
    if (name === "__type") return TypeMetaFieldDef;
    return isObjectType(parent) || isInterfaceType(parent) ? parent.getFields()[name] : undefined;
  }

  private measureField(node: FieldNode, parent: GraphQLNamedType, defaultListLength: number): SelectionSize {
    const name = node.name.value;
    const field = this.findFieldDefinition(parent, name);
    if (!field || !node.selectionSet) return { cost: 1, depth: 1 };
    const type = getNamedType(field.type);
    const isListField = returnsList(field.type);
    const assumedItems = this.findLimit(node.arguments) ?? defaultListLength;
    const innerSize = isCompositeType(type)
      ? this.measureSelections(node.selectionSet, type, isListField ? INNER_LIST_ASSUMED_ITEMS : assumedItems)
      : EMPTY_SELECTION_SIZE;
    const repeatCount = this.listLengths[`${parent.name}.${name}`] ?? (isListField ? assumedItems : 1);
    return { cost: 1 + repeatCount * (1 + innerSize.cost), depth: 1 + innerSize.depth };
  }

  private measureFragment(name: string, defaultListLength: number): SelectionSize {
    const key = `${defaultListLength} ${name}`;
    const knownSize = this.sizesByFragment.get(key);
    if (knownSize) return knownSize;
    const fragment = this.fragments.get(name);
    const type = fragment && this.schema.getType(fragment.typeCondition.name.value);
    const size =
      fragment && type ? this.measureSelections(fragment.selectionSet, type, defaultListLength) : EMPTY_SELECTION_SIZE;
    this.sizesByFragment.set(key, size);
    return size;
  }

  measureSelections(
    { selections }: SelectionSetNode,
    parent: GraphQLNamedType,
    defaultListLength: number,
  ): SelectionSize {
    let cost = 0;
    let depth = 0;
    for (const selection of selections) {
      let size: SelectionSize;
      if (selection.kind === Kind.FIELD) size = this.measureField(selection, parent, defaultListLength);
      else if (selection.kind === Kind.FRAGMENT_SPREAD)
        size = this.measureFragment(selection.name.value, defaultListLength);
      else {
        const on = selection.typeCondition && this.schema.getType(selection.typeCondition.name.value);
        size = this.measureSelections(selection.selectionSet, on ?? parent, defaultListLength);
      }
      cost += size.cost;
      depth = Math.max(depth, size.depth);
    }
    return { cost, depth };
  }

  /** Returns the number of root fields of the operation. The service counts each root field as a separate request. */
  countRootFields({ selections }: SelectionSetNode, visited = new Set<string>()): number {
    let count = 0;
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD) count += 1;
      else if (selection.kind === Kind.INLINE_FRAGMENT) count += this.countRootFields(selection.selectionSet, visited);
      else if (!visited.has(selection.name.value)) {
        visited.add(selection.name.value);
        const fragment = this.fragments.get(selection.name.value);
        count += fragment ? this.countRootFields(fragment.selectionSet, visited) : 0;
      }
    }
    return count;
  }
}

const ROOT_FIELD_LIMIT_NAME = "root fields of its operation" satisfies keyof typeof GRAPHQL_DOCUMENT_LIMITS;
const FIELD_DEPTH_LIMIT_NAME = "levels of fields" satisfies keyof typeof GRAPHQL_DOCUMENT_LIMITS;

function readIntegerDefaults({ variableDefinitions }: OperationDefinitionNode): Record<string, unknown> {
  const input = (variableDefinitions ?? []).flatMap(({ variable, defaultValue }) =>
    defaultValue?.kind === Kind.INT ? [[variable.name.value, Number(defaultValue.value)] as const] : [],
  );
  return Object.fromEntries(input);
}

function isIntrospectionOnly({ selectionSet: { selections } }: OperationDefinitionNode): boolean {
  const [firstSelection] = selections;
  return (
    selections.length === 1 &&
    firstSelection?.kind === Kind.FIELD &&
    firstSelection.name.value === SchemaMetaFieldDef.name
  );
}

/** Returns the cost of the longest introspection query that graphql-js generates. The cost grows with the schema. */
function computeIntrospectionCost(schema: GraphQLSchema, listLengths: Record<string, number>): number {
  const allOptions = { oneOf: true, specifiedByUrl: true, directiveIsRepeatable: true, inputValueDeprecation: true };
  const document = parse(getIntrospectionQuery({ ...allOptions, schemaDescription: true }));
  const [operation] = document.definitions as OperationDefinitionNode[];
  return new SelectionSizeEstimator(schema, listLengths, document, {}).measureSelections(
    operation!.selectionSet,
    schema.getQueryType()!,
    LIST_ITEMS_PER_PAGE_DEFAULT,
  ).cost;
}

/**
 * Creates a function that estimates the cost of an operation in a valid document. The function returns the cost, or an error that names the
 * exceeded limit.
 */
export function createGraphqlCostEstimator(schema: GraphQLSchema) {
  const listLengths = estimateIntrospectionListLengths(schema);
  const introspectionCostMax = Math.ceil(INTROSPECTION_MARGIN * computeIntrospectionCost(schema, listLengths));

  return (
    document: DocumentNode,
    operationName: string | null | undefined,
    variables: GraphqlVariables,
  ): GraphQLError | number => {
    const operation = getOperationAST(document, operationName);
    const root = operation && schema.getRootType(operation.operation);
    // GraphQL's execution reports an unknown or missing operation name later.
    if (!operation || !root) return 0;
    const estimator = new SelectionSizeEstimator(schema, listLengths, document, {
      ...readIntegerDefaults(operation),
      ...variables,
    });
    const rootFieldCount = estimator.countRootFields(operation.selectionSet);
    if (rootFieldCount > GRAPHQL_DOCUMENT_LIMITS[ROOT_FIELD_LIMIT_NAME]) {
      return new GraphQLError(
        `a GraphQL operation can have at most ${GRAPHQL_DOCUMENT_LIMITS[ROOT_FIELD_LIMIT_NAME]} root fields (got ${rootFieldCount})`,
      );
    }
    const { cost, depth: levels } = estimator.measureSelections(
      operation.selectionSet,
      root,
      LIST_ITEMS_PER_PAGE_DEFAULT,
    );
    if (levels > GRAPHQL_DOCUMENT_LIMITS[FIELD_DEPTH_LIMIT_NAME]) {
      return new GraphQLError(
        `a GraphQL operation can be at most ${GRAPHQL_DOCUMENT_LIMITS[FIELD_DEPTH_LIMIT_NAME]} levels deep (got ${levels})`,
      );
    }
    const costMax = isIntrospectionOnly(operation) ? introspectionCostMax : GRAPHQL_OPERATION_COST_MAX;
    if (cost > costMax) {
      const estimatedValues = Math.ceil(Math.min(cost, Number.MAX_SAFE_INTEGER));
      return new GraphQLError(
        `a GraphQL operation can select at most ${costMax} values (got an estimate of ${estimatedValues}); select fewer fields, or pass a lower "limit" or "count" to its lists`,
      );
    }
    return cost;
  };
}
