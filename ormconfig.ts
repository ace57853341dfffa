/** For TypeORM's command line alone; the service itself opens its connection from its configuration. */
import "reflect-metadata";
import { readConfig } from "./src/config.js";
import { dataSource } from "./src/data/database.js";

export const source = dataSource(readConfig().databaseUrl ?? "postgres://localhost/svc", 2);
