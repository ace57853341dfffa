/** That the list of migrations holds what the folder holds: one that is forgotten there is never run, and nothing else says so. */
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { MIGRATIONS } from "../../src/data/database.js";

const FOLDER = fileURLToPath(new URL("../../../migrations/", import.meta.url));

it("every migration of the folder is in the list, in the order of their times", () => {
  const inFolder = readdirSync(FOLDER).map((name) => name.slice(0, name.indexOf("-")));
  const inList = MIGRATIONS.map(({ name }) => name.slice(-inFolder[0]!.length));
  // Some files hold more than one.
  expect(inList).to.include.members(inFolder);
  expect(inList).to.deep.equal([...inList].sort());
});
