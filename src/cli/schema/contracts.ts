/** The three committed contracts in `schema/`, as the code makes them now. Writes nothing. */
import { lexicographicSortSchema, printSchema } from "graphql";
import type { DataSource } from "typeorm";
import { createSchema, type Resolvers } from "../../api/graphql/schema.js";
import { dumpDatabase } from "./database-dump.js";
import { errorTable } from "./error-table.js";

/** File names in `schema/` with their content. `db` is a migrated database, `root` the checkout. */
export async function contracts(db: DataSource, root: string): Promise<Record<string, string>> {
  // Types and arguments are the classes' own; no resolver is called.
  const schema = await createSchema({} as Resolvers);
  return {
    "schema.graphql": `${printSchema(lexicographicSortSchema(schema))}\n`,
    "database.sql": await dumpDatabase(db),
    "errors.md": errorTable(root),
  };
}
