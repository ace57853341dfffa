/** Expires and deletes stages as a scheduler does, for tests of services without this role. */
import type { Db } from "../../src/data/database.js";
import { Stages } from "../../src/operations/stages/stages.js";

type StagesOptions = ConstructorParameters<typeof Stages>[0];

/** Creates the operations of stages. They use only `db`, unless `options` contains other parts. */
export function createStages(db: Db, options: Partial<StagesOptions> = {}): Stages {
  const credentials = { clearCallerCaches: async () => undefined };
  const definitions = { dropIndexes: () => undefined };
  const parts = { db, credentials, definitions, log: { warn: () => undefined }, ...options };
  return new Stages(parts as unknown as StagesOptions);
}
