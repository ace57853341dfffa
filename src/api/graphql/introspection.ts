/** Builds the responses to the introspection queries of GraphiQL and other tools once, because they are the same for all callers. */
import { executeSync, type GraphQLSchema, getIntrospectionQuery, parse } from "graphql";

/** Options with which GraphiQL (first) and other tools (defaults of graphql-js) generate their introspection query. */
const INTROSPECTION_OPTIONS = [{ inputValueDeprecation: false, schemaDescription: false }, {}];

/** Maximum length of a query that the service compares with the known introspection queries. */
export const INTROSPECTION_QUERY_MAX_CHARACTERS = 8 * 1024;

const collapseSpaces = (text: string): string => text.replace(/\s+/g, " ").trim();

/** Body of a request, as parsed JSON. */
interface IntrospectionRequest {
  query?: unknown;
  operationName?: unknown;
}

/** Returns the JSON text of the response to a known introspection query; null for any other query. */
export type FindIntrospectionResponse = (body: unknown) => string | null;

export function createIntrospectionResponder(schema: GraphQLSchema): FindIntrospectionResponse {
  const responseGettersByQuery = new Map<string, () => string>();
  for (const queryOptions of INTROSPECTION_OPTIONS) {
    const query = getIntrospectionQuery(queryOptions);
    let text: string | undefined;
    const createResponseText = () => `${JSON.stringify(executeSync({ schema, document: parse(query) }))}\n`;
    responseGettersByQuery.set(collapseSpaces(query), () => (text ??= createResponseText()));
  }
  return (body) => {
    const { query, operationName } = (body ?? {}) as IntrospectionRequest;
    if (typeof query !== "string" || query.length > INTROSPECTION_QUERY_MAX_CHARACTERS) return null;
    if (operationName != null && operationName !== "IntrospectionQuery") return null;
    return responseGettersByQuery.get(collapseSpaces(query))?.() ?? null;
  };
}
