/** Generates the three files in `schema/`, which describe the service's API, database and errors. */
import { type GraphQLArgument, type GraphQLSchema, lexicographicSortSchema, printSchema } from "graphql";
import { listRootFields, loadSchema } from "../../api/graphql/schema.js";
import type { Db } from "../../data/database.js";
import { dumpDatabaseSchema } from "./database-dump.js";
import { createErrorTable } from "./error-table.js";

/** Sorts the GraphQL schema by name. Arguments keep their order, because the API contract defines it (`appId` is first). */
function sortSchema(schema: GraphQLSchema): GraphQLSchema {
  const sortedSchema = lexicographicSortSchema(schema);
  const argumentOrderByField = new Map(
    listRootFields(schema).map(({ name, args }) => [name, args.map((argument) => argument.name)]),
  );
  for (const { name, args } of listRootFields(sortedSchema)) {
    const order = argumentOrderByField.get(name) ?? [];
    (args as GraphQLArgument[]).sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
  }
  return sortedSchema;
}

/**
 * Returns the content of each file in `schema/` by its name.
 * @param db a migrated database
 * @param root folder of the checkout
 */
export async function generateSchemaFiles(db: Db, root: string): Promise<Record<string, string>> {
  const schema = await loadSchema();
  return {
    "schema.graphql": `${printSchema(sortSchema(schema))}\n`,
    "database.sql": await dumpDatabaseSchema(db),
    "errors.md": createErrorTable(root),
  };
}
