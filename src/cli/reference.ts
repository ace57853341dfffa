/** `npm run reference`: generates the pages of docs/reference from the code. */
import "reflect-metadata";
import { fileURLToPath } from "node:url";
import { runCommand } from "./command.js";
import { writeReference } from "./reference/pages.js";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

await runCommand(async () => {
  process.stdout.write(await writeReference(ROOT));
});
