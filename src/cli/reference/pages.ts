/** Generates the pages of docs/reference from the code. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadSchema } from "../../api/graphql/schema.js";
import { operationsByField } from "./callers.js";
import { commandsPage } from "./commands.js";
import { errorsPage } from "./errors.js";
import { eventsPage } from "./events.js";
import { graphqlOperationsPage } from "./graphql-operations.js";
import { limitsPage } from "./limits.js";
import { manifestFieldsPage } from "./manifest-fields.js";
import { metricsPage } from "./metrics.js";
import { restRoutesPage } from "./rest-routes.js";
import { replaceRunStates } from "./run-states.js";
import { svcCallsPage } from "./svc-calls.js";
import { variablesPage } from "./variables.js";

/**
 * Returns the content of each page by its file name in docs/reference.
 * @param root folder of the checkout, whose source files the function reads
 */
export async function referencePages(root: string): Promise<Record<string, string>> {
  const schema = await loadSchema();
  const byField = operationsByField(root);
  return {
    "rest-routes.md": await restRoutesPage(schema, byField, root),
    "graphql-operations.md": graphqlOperationsPage(schema, byField),
    "svc-calls.md": svcCallsPage(root),
    "errors.md": errorsPage(root),
    "limits.md": limitsPage(root),
    "variables.md": variablesPage(root),
    "events.md": eventsPage(root),
    "metrics.md": metricsPage(root),
    "manifest-fields.md": manifestFieldsPage(),
    "commands.md": commandsPage(),
  };
}

/**
 * Writes the generated pages. Returns a line of text that lists them.
 * @param root folder of the checkout
 */
export async function writeReference(root: string): Promise<string> {
  const pages = await referencePages(root);
  for (const [name, content] of Object.entries(pages)) writeFileSync(join(root, "docs/reference", name), content);
  const lifecycle = join(root, "docs/internals/run-lifecycle.md");
  writeFileSync(lifecycle, replaceRunStates(readFileSync(lifecycle, "utf8")));
  return `wrote ${Object.keys(pages).join(", ")} to docs/reference/\n`;
}
