/** Finds the first reason why the variables of a GraphQL operation do not match their types. Executes nothing. */
import { type DocumentNode, type GraphQLError, type GraphQLSchema, getOperationAST, getVariableValues } from "graphql";

/**
 * Returns an error for the first invalid variable; null if all are valid. Call it before a document is executed, because execution would
 * collect many errors, each with the whole value.
 */
export function findVariablesError(
  schema: GraphQLSchema,
  document: DocumentNode,
  operationName: string | null | undefined,
  variables: Readonly<Record<string, unknown>> | null | undefined,
): GraphQLError | null {
  const operation = getOperationAST(document, operationName);
  // GraphQL's execution reports an unknown or missing operation name later.
  if (!operation) return null;
  const { errors } = getVariableValues(schema, operation.variableDefinitions ?? [], variables ?? {}, { maxErrors: 1 });
  return errors?.[0] ?? null;
}
