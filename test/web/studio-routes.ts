/** Studio's pages as its table of routes has them: read from the source, for the table's own types are the browser's. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Seen from dist/test/web. */
const TABLE = fileURLToPath(new URL("../../../src/web/studio/routes.ts", import.meta.url));

/** The names that addresses have for the pages. */
export function studioViews(): string[] {
  const [, table = ""] = /^const TABLE = \{\n(.*?)^\}/ms.exec(readFileSync(TABLE, "utf8")) ?? [];
  const views = [...table.matchAll(/^ {2}(\w+): \{/gm)].map(([, view]) => view!);
  if (views.length < 5) throw new Error(`the table of routes could not be read: ${views}`);
  return views;
}
