/** Holds the committed contracts in schema/ to the code, so that a change of either shows. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { buildSchema } from "graphql";
import { createSchema, type Resolvers, rootFields } from "../src/api/graphql/schema.js";
import { contracts } from "../src/cli/schema/contracts.js";
import { partsRaising, RESERVED } from "../src/cli/schema/error-table.js";
import { openDatabase } from "../src/data/database.js";
import { STATUS } from "../src/errors.js";
import { freshDatabase } from "./harness/postgres.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

describe("the committed contracts, which npm run schema writes", () => {
  let made: Record<string, string>;

  before(async () => {
    const database = await freshDatabase();
    const db = await openDatabase(database.url, 1);
    made = await contracts(db, ROOT).finally(() => db.destroy());
    await database.drop();
  });

  for (const name of ["schema.graphql", "database.sql", "errors.md"]) {
    it(`schema/${name} is what the code makes`, () => {
      expect(readFileSync(join(ROOT, "schema", name), "utf8")).to.equal(made[name]);
    });
  }

  it("every query, mutation and subscription of an app takes appId first", async () => {
    for (const schema of [await createSchema({} as Resolvers), buildSchema(made["schema.graphql"]!)]) {
      const late = rootFields(schema).filter(({ args }) => args.findIndex(({ name }) => name === "appId") > 0);
      expect(late.map(({ name }) => name)).to.deep.equal([]);
    }
  });

  it("every status of the catalogue is raised somewhere, or reserved with a reason", () => {
    const raised = partsRaising(ROOT);
    const silent = Object.keys(STATUS).filter((status) => raised.get(status as keyof typeof STATUS)?.length === 0);
    expect(silent).to.have.members(Object.keys(RESERVED));
  });

  it("every status that the table of errors names is in the catalogue", () => {
    const named = [...made["errors.md"]!.matchAll(/^\| `([A-Z0-9_]+)`/gm)].map(([, status]) => status);
    expect(named).to.deep.equal(Object.keys(STATUS));
  });
});
