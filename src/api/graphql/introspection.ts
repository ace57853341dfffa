/** The answers to the questions that GraphiQL's page and other tools ask of the schema by themselves, made once. Knows no credential. */
import { executeSync, type GraphQLSchema, getIntrospectionQuery, parse } from "graphql";

/** The options of GraphiQL, and the defaults of graphql-js. */
const QUESTIONS = [{ inputValueDeprecation: false, schemaDescription: false }, {}];

/** More characters than any of them has: what is longer is not compared. */
export const QUESTION_MAX_CHARACTERS = 8 * 1024;

const squeezed = (text: string): string => text.replace(/\s+/g, " ").trim();

/** A request's body, as far as it was understood to be one. */
interface Asked {
  query?: unknown;
  operationName?: unknown;
}

/** Answers the JSON text for one of the known questions; null for anything else. */
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
