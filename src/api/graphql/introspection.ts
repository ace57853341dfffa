/** Responses to the introspection queries of GraphiQL and other tools, built once. Independent of credentials. */
import { executeSync, type GraphQLSchema, getIntrospectionQuery, parse } from "graphql";

/** Introspection options of GraphiQL, and the defaults of graphql-js. */
const QUESTIONS = [{ inputValueDeprecation: false, schemaDescription: false }, {}];

/** Longer queries than any of these are not compared. */
export const QUESTION_MAX_CHARACTERS = 8 * 1024;

const squeezed = (text: string): string => text.replace(/\s+/g, " ").trim();

/** The parsed body of a request. */
interface Asked {
  query?: unknown;
  operationName?: unknown;
}

/** Returns the JSON text for one of the known introspection queries; null for other queries. */
export type KnownAnswers = (body: unknown) => string | null;

export function createKnownAnswers(schema: GraphQLSchema): KnownAnswers {
  const texts = new Map<string, () => string>();
  for (const question of QUESTIONS) {
    const query = getIntrospectionQuery(question);
    let text: string | undefined;
    const write = () => `${JSON.stringify(executeSync({ schema, document: parse(query) }))}\n`;
    texts.set(squeezed(query), () => (text ??= write()));
  }
  return (body) => {
    const { query, operationName } = (body ?? {}) as Asked;
    if (typeof query !== "string" || query.length > QUESTION_MAX_CHARACTERS) return null;
    if (operationName != null && operationName !== "IntrospectionQuery") return null;
    return texts.get(squeezed(query))?.() ?? null;
  };
}
