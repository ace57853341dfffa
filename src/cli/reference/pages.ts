/** Generates the pages of docs/reference from the code. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadSchema } from "../../api/graphql/schema.js";
import { readOperationsByField } from "./callers.js";
import { buildCommandsPage } from "./commands.js";
import { buildErrorsPage } from "./errors.js";
import { buildEventsPage } from "./events.js";
import { buildGraphqlOperationsPage } from "./graphql-operations.js";
import { buildLimitsPage } from "./limits.js";
import { buildManifestFieldsPage } from "./manifest-fields.js";
import { buildMetricsPage } from "./metrics.js";
import { buildRestRoutesPage } from "./rest-routes.js";
import { replaceRunStatesSection } from "./run-states.js";
import { buildSvcCallsPage } from "./svc-calls.js";
import { buildVariablesPage } from "./variables.js";

/**
 * Returns the content of each page by its file name in docs/reference.
 * @param root folder of the checkout, whose source files the function reads
 */
export async function generateReferencePages(root: string): Promise<Record<string, string>> {
  const schema = await loadSchema();
  const operationsByField = readOperationsByField(root);
  return {
    "rest-routes.md": await buildRestRoutesPage(schema, operationsByField, root),
    "graphql-operations.md": buildGraphqlOperationsPage(schema, operationsByField),
    "svc-calls.md": buildSvcCallsPage(root),
    "errors.md": buildErrorsPage(root),
    "limits.md": buildLimitsPage(root),
    "variables.md": buildVariablesPage(root),
    "events.md": buildEventsPage(root),
    "metrics.md": buildMetricsPage(root),
    "manifest-fields.md": buildManifestFieldsPage(),
    "commands.md": buildCommandsPage(),
  };
}

export async function writeReference(root: string): Promise<string> {
  const pages = await generateReferencePages(root);
  for (const [name, content] of Object.entries(pages)) writeFileSync(join(root, "docs/reference", name), content);
  const lifecyclePath = join(root, "docs/internals/run-lifecycle.md");
  writeFileSync(lifecyclePath, replaceRunStatesSection(readFileSync(lifecyclePath, "utf8")));
  return `wrote ${Object.keys(pages).join(", ")} to docs/reference/\n`;
}
