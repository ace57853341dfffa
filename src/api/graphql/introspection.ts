/**
 * Builds the responses to the introspection queries of GraphiQL and other tools once, because they are equal for all
 * callers.
 */
import { executeSync, type GraphQLSchema, getIntrospectionQuery, parse } from "graphql";

/** Introspection options of GraphiQL, and the defaults of graphql-js. */
const INTROSPECTION_OPTIONS = [{ inputValueDeprecation: false, schemaDescription: false }, {}];

/** Maximum length of a query that is compared with the known ones. */
export const QUESTION_MAX_CHARACTERS = 8 * 1024;

const squeezeSpaces = (text: string): string => text.replace(/\s+/g, " ").trim();

/** The parsed body of a request. */
interface IntrospectionRequest {
  query?: unknown;
  operationName?: unknown;
}

/** Function that returns the JSON text for a known introspection query, and null for other queries. */
export type FindKnownAnswer = (body: unknown) => string | null;

export function createKnownAnswers(schema: GraphQLSchema): FindKnownAnswer {
  const answerTexts = new Map<string, () => string>();
  for (const question of INTROSPECTION_OPTIONS) {
    const query = getIntrospectionQuery(question);
    let text: string | undefined;
    const writeAnswer = () => `${JSON.stringify(executeSync({ schema, document: parse(query) }))}\n`;
    answerTexts.set(squeezeSpaces(query), () => (text ??= writeAnswer()));
  }
  return (body) => {
    const { query, operationName } = (body ?? {}) as IntrospectionRequest;
    if (typeof query !== "string" || query.length > QUESTION_MAX_CHARACTERS) return null;
    if (operationName != null && operationName !== "IntrospectionQuery") return null;
    return answerTexts.get(squeezeSpaces(query))?.() ?? null;
  };
}
