/** Finds the meaning of each REST query parameter for the reference: usually the description of the GraphQL argument with the same name. */
import type { GraphQLSchema } from "graphql";
import { formatInlineCode } from "./tables.js";

/** Matches the description of the GraphQL argument `by`. REST routes need another description of `by`, which mentions the path. */
const REFERENCE_MEANING_PATTERN = /^Meaning of the reference/;
const BY_MEANING =
  "`id` or `name`: states whether the path contains an ID or a name. By default, the service reads digits as an ID, and any other text as a name.";

/** Meanings of query parameters for which the GraphQL operation has no argument of the same name. */
const PARAMETER_MEANINGS: Readonly<Record<string, string>> = {
  appId: "ID of the app whose invitations to return; all invitations of the organization by default.",
  by: BY_MEANING,
  details: "True to also return who set each key, and when; false by default.",
  limit: "Maximum number of items to return; 50 by default.",
  offset: "Number of items to skip; 0 by default.",
};

/** Returns the descriptions of a GraphQL operation's arguments by name. `operationId` may have a suffix of REST, such as `ByName`. */
function readArgumentDescriptions(schema: GraphQLSchema, operationId: string): ReadonlyMap<string, string> {
  const fields = { ...schema.getQueryType()?.getFields(), ...schema.getMutationType()?.getFields() };
  const field = fields[operationId] ?? fields[operationId.split(/By(?=[A-Z])|\d/)[0]!];
  return new Map((field?.args ?? []).map(({ name, description }) => [name, description ?? ""]));
}

export function describeQueryParameters(
  schema: GraphQLSchema,
  operationId: string,
  names: readonly string[],
): string[] {
  const argumentDescriptions = readArgumentDescriptions(schema, operationId);
  const rows = names.map((name) => {
    const description = argumentDescriptions.get(name) ?? "";
    const meaning = REFERENCE_MEANING_PATTERN.test(description) ? BY_MEANING : description || PARAMETER_MEANINGS[name];
    if (!meaning)
      throw new Error(
        `the query parameter ${name} of ${operationId} has no description; add one to query-parameters.ts`,
      );
    return `${formatInlineCode(name)}: ${meaning}`;
  });
  if (rows.length < 2) return rows.map((row) => `- Query parameter ${row}`);
  return [["- Query parameters:", ...rows.map((row) => `  - ${row}`)].join("\n")];
}
