/** Meanings of query parameters for the reference of the REST routes: those of the GraphQL arguments with the same names. */
import type { GraphQLSchema } from "graphql";
import { inlineCode } from "./tables.js";

/** Description of the GraphQL argument `by` of a name or ID, which does not say what the path has to do with it. */
const REFERENCE_MEANING = /^Meaning of the reference/;
const BY_MEANING =
  "`id` or `name`: how to read the ID or name in the path. By default, digits are an ID, and another text is a name.";

/** Meanings of parameters that no GraphQL argument of the operation describes. */
const MEANINGS: Readonly<Record<string, string>> = {
  appId: "ID of the app whose invitations to return; all invitations of the organization by default.",
  by: BY_MEANING,
  details: "True to also return who set each key, and when; false by default.",
  limit: "Maximum number of items to return; 50 by default.",
  offset: "Number of items to skip; 0 by default.",
};

/** Returns the GraphQL descriptions of an operation's arguments. The ID of a route can have a suffix, such as `ByName`. */
function argumentsOf(schema: GraphQLSchema, operationId: string): ReadonlyMap<string, string> {
  const fields = { ...schema.getQueryType()?.getFields(), ...schema.getMutationType()?.getFields() };
  const field = fields[operationId] ?? fields[operationId.split(/By(?=[A-Z])|\d/)[0]!];
  return new Map((field?.args ?? []).map(({ name, description }) => [name, description ?? ""]));
}

/** Returns a list item about the query parameters of a route, or nothing if it has none. */
export function queryParametersNote(schema: GraphQLSchema, operationId: string, names: readonly string[]): string[] {
  const described = argumentsOf(schema, operationId);
  const rows = names.map((name) => {
    const description = described.get(name) ?? "";
    const meaning = REFERENCE_MEANING.test(description) ? BY_MEANING : description || MEANINGS[name];
    if (!meaning) throw new Error(`no meaning of the query parameter ${name} of ${operationId}`);
    return `${inlineCode(name)}: ${meaning}`;
  });
  if (rows.length < 2) return rows.map((row) => `- Query parameter ${row}`);
  return [["- Query parameters:", ...rows.map((row) => `  - ${row}`)].join("\n")];
}
