/** `npm run reference`: writes the generated pages of docs/reference from the code. */
import "reflect-metadata";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runCommand } from "./command.js";
import { referencePages } from "./reference/pages.js";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

await runCommand(async () => {
  const pages = await referencePages(ROOT);
  for (const [name, content] of Object.entries(pages)) writeFileSync(join(ROOT, "docs/reference", name), content);
  process.stdout.write(`wrote ${Object.keys(pages).join(", ")} to docs/reference/\n`);
});
