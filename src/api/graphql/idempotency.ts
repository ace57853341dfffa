/**
 * Reads the `idempotencyKey` argument of GraphQL fields. Checks that an `Idempotency-Key` header applies to one field only. Stores no key.
 */
import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  Kind,
  type SelectionSetNode,
} from "graphql";
import { Arg } from "type-graphql";
import { parseIdempotencyKey, type RequestContext } from "../context.js";

const KEY_ARGUMENT_NAME = "idempotencyKey";

const KEY_DESCRIPTION =
  "Idempotency key of this field: repeats within 24 hours return the first result. Takes precedence over the Idempotency-Key header, which is the default.";

export const IdempotencyKeyArgument = () =>
  Arg(KEY_ARGUMENT_NAME, () => String, { nullable: true, description: KEY_DESCRIPTION });

/**
 * Returns the idempotency key in the field's argument `idempotencyKey`, otherwise the key in the request's header.
 * @throws ActionError REQUEST_INVALID for a malformed key
 */
export const selectIdempotencyKey = (
  { idempotencyKey }: RequestContext,
  input: string | null | undefined,
): string | null => (input == null ? idempotencyKey : parseIdempotencyKey(input, `the argument ${KEY_ARGUMENT_NAME}`));

/** Returns the names of the operation's root fields to which the header `Idempotency-Key` would apply. */
function findFieldsUsingKey(schema: GraphQLSchema, document: DocumentNode, operationName: string | null): Set<string> {
  const operation = getOperationAST(document, operationName);
  const fields = operation && schema.getRootType(operation.operation)?.getFields();
  const keyFields = new Set<string>();
  const visitSelections = ({ selections }: SelectionSetNode): void => {
    for (const selection of selections) {
      if (selection.kind === Kind.INLINE_FRAGMENT) visitSelections(selection.selectionSet);
      else if (selection.kind === Kind.FRAGMENT_SPREAD) {
        const name = selection.name.value;
        const fragment = document.definitions.find(
          (definition) => definition.kind === Kind.FRAGMENT_DEFINITION && definition.name.value === name,
        );
        if (fragment?.kind === Kind.FRAGMENT_DEFINITION) visitSelections(fragment.selectionSet);
      } else {
        const { name, alias, arguments: input } = selection;
        const honorsKeys = fields?.[name.value]?.args.some((argument) => argument.name === KEY_ARGUMENT_NAME);
        if (honorsKeys && !input?.some((argument) => argument.name.value === KEY_ARGUMENT_NAME))
          keyFields.add((alias ?? name).value);
      }
    }
  };
  if (operation) visitSelections(operation.selectionSet);
  return keyFields;
}

/**
 * Returns an error if the header's key would apply to several root fields, because the second field would then get the result of the first.
 * Otherwise returns null.
 */
export function findSharedIdempotencyKeyError(
  schema: GraphQLSchema,
  document: DocumentNode,
  operationName: string | null,
): GraphQLError | null {
  const keyFields = [...findFieldsUsingKey(schema, document, operationName)];
  if (keyFields.length < 2) return null;
  return new GraphQLError(
    `the header Idempotency-Key can apply to only one root field of a GraphQL operation (got ${keyFields.length}: ${keyFields.slice(0, 5).join(", ")}); remove the header, and set the argument ${KEY_ARGUMENT_NAME} of each field`,
  );
}
