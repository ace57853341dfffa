/** Configuration for TypeORM's command line only. The service itself opens its connection from its own configuration. */
import "reflect-metadata";
import { readConfig } from "./src/config.js";
import { createDatabase } from "./src/data/database.js";

export const source = createDatabase(readConfig().databaseUrl ?? "postgres://localhost/svc", 2);
