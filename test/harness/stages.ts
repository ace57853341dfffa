/** Creates a `Stages` object, for tests that expire and delete stages without a scheduler. */
import type { Db } from "../../src/data/database.js";
import { Stages } from "../../src/operations/stages/stages.js";

type StagesOptions = ConstructorParameters<typeof Stages>[0];

/** Creates a `Stages` object that uses `db`. Its other dependencies do nothing, unless `options` replaces them. */
export function createStages(db: Db, options: Partial<StagesOptions> = {}): Stages {
  const credentials = { clearCallerCaches: async () => undefined };
  const definitions = { dropIndexes: () => undefined };
  const parts = { db, credentials, definitions, log: { warn: () => undefined }, ...options };
  return new Stages(parts as unknown as StagesOptions);
}
