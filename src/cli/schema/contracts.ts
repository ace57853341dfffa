/** The three committed contracts in `schema/`, as the code makes them now. Writes nothing. */
import { type GraphQLArgument, type GraphQLSchema, lexicographicSortSchema, printSchema } from "graphql";
import type { DataSource } from "typeorm";
import { createSchema, type Resolvers, rootFields } from "../../api/graphql/schema.js";
import { dumpDatabase } from "./database-dump.js";
import { errorTable } from "./error-table.js";

/** By name, but for the arguments: their order is the contract's (section 5, `appId` first). */
function sortSchema(schema: GraphQLSchema): GraphQLSchema {
  const copy = lexicographicSortSchema(schema);
  const writtenOrder = new Map(
    rootFields(schema).map(({ name, args }) => [name, args.map((argument) => argument.name)]),
  );
  for (const { name, args } of rootFields(copy)) {
    const order = writtenOrder.get(name) ?? [];
    (args as GraphQLArgument[]).sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
  }
  return copy;
}

/** File names in `schema/` with their content. `db` is a migrated database, `root` the checkout. */
export async function contractFiles(db: DataSource, root: string): Promise<Record<string, string>> {
  // Types and arguments are the classes' own; no resolver is called.
  const schema = await createSchema({} as Resolvers);
  return {
    "schema.graphql": `${printSchema(sortSchema(schema))}\n`,
    "database.sql": await dumpDatabase(db),
    "errors.md": errorTable(root),
  };
}
