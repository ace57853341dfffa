/** Finds the first reason why the variables of an operation do not fit its types. Executes nothing. */
import { type DocumentNode, type GraphQLError, type GraphQLSchema, getOperationAST, getVariableValues } from "graphql";

/**
 * Returns the first fault of the variables. Call it before a valid document is executed. Execution would collect fifty errors, each with
 * the whole value, and a megabyte of unknown input fields would block all other requests for seconds.
 */
export function variablesFault(
  schema: GraphQLSchema,
  document: DocumentNode,
  operationName: string | null | undefined,
  variables: Readonly<Record<string, unknown>> | null | undefined,
): GraphQLError | null {
  const operation = getOperationAST(document, operationName);
  // Execution reports an unknown or missing operation name.
  if (!operation) return null;
  const { errors } = getVariableValues(schema, operation.variableDefinitions ?? [], variables ?? {}, { maxErrors: 1 });
  return errors?.[0] ?? null;
}
