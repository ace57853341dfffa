/** `npm run schema`: generates the files in `schema/` and the pages of docs/reference from the code and from a separate empty database. */
import "reflect-metadata";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pino } from "pino";
import { migrateDatabase, openDatabase } from "../data/database.js";
import { startEmbeddedPostgres } from "../engine/embedded-postgres.js";
import { runCommand } from "./command.js";
import { writeReference } from "./reference/pages.js";
import { generateSchemaFiles } from "./schema/contracts.js";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

await runCommand(async () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-schema-"));
  const log = pino({ level: "warn" }, pino.destination(2));
  const postgres = await startEmbeddedPostgres({ dataDir: join(folder, "data"), log, settings: { fsync: "off" } });
  try {
    await migrateDatabase(postgres.url);
    const db = await openDatabase(postgres.url, 1);
    const files = await generateSchemaFiles(db, ROOT);
    await db.destroy();
    mkdirSync(join(ROOT, "schema"), { recursive: true });
    for (const [name, content] of Object.entries(files)) writeFileSync(join(ROOT, "schema", name), content);
    process.stdout.write(`wrote ${Object.keys(files).join(", ")} to schema/\n`);
    process.stdout.write(await writeReference(ROOT));
  } finally {
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
