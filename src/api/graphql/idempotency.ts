/** Reads the `idempotencyKey` argument of fields. Checks that an `Idempotency-Key` header applies to one field only. Stores no key. */
import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  Kind,
  type SelectionSetNode,
} from "graphql";
import { Arg } from "type-graphql";
import { type RequestContext, readIdempotencyKey } from "../context.js";

const KEY_ARGUMENT = "idempotencyKey";

const keyDescription =
  "Idempotency key of this field: repeats within 24 hours return the first result. Takes precedence over the Idempotency-Key header, which is the default.";

/** Declares the argument of a field that honors an idempotency key. */
export const IdempotencyKey = () => Arg(KEY_ARGUMENT, () => String, { nullable: true, description: keyDescription });

/** Returns the field's own key, otherwise that of the request. @throws ActionError REQUEST_INVALID for a malformed key */
export const idempotencyKeyOf = (
  { idempotencyKey }: RequestContext,
  input: string | null | undefined,
): string | null => (input == null ? idempotencyKey : readIdempotencyKey(input));

/** Returns the response names of the operation's root fields that would use the key of the request. */
function fieldsUsingKey(schema: GraphQLSchema, document: DocumentNode, operationName: string | null): Set<string> {
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
        const honorsKeys = fields?.[name.value]?.args.some((argument) => argument.name === KEY_ARGUMENT);
        if (honorsKeys && !input?.some((argument) => argument.name.value === KEY_ARGUMENT))
          keyFields.add((alias ?? name).value);
      }
    }
  };
  if (operation) visitSelections(operation.selectionSet);
  return keyFields;
}

/**
 * Returns an error if one key would apply to several fields, because the second field would get the result of the first. Returns null
 * otherwise.
 */
export function sharedKeyFault(
  schema: GraphQLSchema,
  document: DocumentNode,
  operationName: string | null,
): GraphQLError | null {
  const keyFields = [...fieldsUsingKey(schema, document, operationName)];
  if (keyFields.length < 2) return null;
  return new GraphQLError(
    `Idempotency-Key applies to one field of a document (got ${keyFields.length}: ${keyFields.slice(0, 5).join(", ")}); give each its own ${KEY_ARGUMENT}`,
  );
}
