/** Why the variables of an operation do not fit its types: the first fault alone. Executes nothing. */
import { type DocumentNode, type GraphQLError, type GraphQLSchema, getOperationAST, getVariableValues } from "graphql";

/**
 * To be asked before a valid document is executed. Execution itself collects fifty faults, and each repeats the whole value: a
 * megabyte of fields that an input has not would take seconds, in which nobody else is answered.
 */
export function variablesFault(
  schema: GraphQLSchema,
  document: DocumentNode,
  operationName: string | null | undefined,
  variables: Readonly<Record<string, unknown>> | null | undefined,
): GraphQLError | null {
  const operation = getOperationAST(document, operationName);
  // Which operation is meant is execution's to say.
  if (!operation) return null;
  const { errors } = getVariableValues(schema, operation.variableDefinitions ?? [], variables ?? {}, { maxErrors: 1 });
  return errors?.[0] ?? null;
}
