/** Builds the reference page of the log event types that can start actions, with the source files that write each type. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ENTRIES_CHANGED_AUDIT_TYPE } from "../../rules/entries/entry-events.js";
import { LOG_EVENT_TYPES } from "../../rules/trigger-match.js";
import { buildReferencePage, formatInlineCode, formatMarkdownTable } from "./tables.js";

const EVENT_MEANINGS: Record<string, string> = {
  "app.analytics.event": "A page recorded an event.",
  "app.analytics.pageView": "A page recorded a page view.",
  "app.update": "Fields or settings of the app changed.",
  "app.view": "A page of the app was opened.",
  "dataSource.entry.create": "An entry was inserted.",
  "dataSource.entry.update": "An entry was changed.",
  "dataSource.entry.delete": "An entry was removed.",
  "dataSource.event": "The service never stores events of this type itself; your back end can store them.",
  "dataSource.import": "An import or a restore ended, or one write changed more than 1,000 entries.",
  "mediaFile.create": "A file was uploaded.",
  "session.locale.updated": "The user of a page chose a language.",
  "ai.completions": "A language model was called.",
  "ai.image": "An image was generated.",
  "ai.audio": "Speech was transcribed.",
  "ai.embeddings": "Embeddings were computed.",
  "sms.2fa": "The service sent an app user a code for the second factor by text message.",
  "sms.communicate": "An action sent a text message.",
  "sms.dataSourceHook":
    "A hook of a data source sent a text message, or could not send it. Then `detail` has the reason.",
  "sms.validate": "The service sent an app user a code for a sign-in by text message.",
  "email.communicate": "An action sent an e-mail.",
  "email.delivered": "A delivery report says that an e-mail arrived.",
  "email.delayed": "The delivery of an e-mail was delayed.",
  "email.bounced": "A delivery report says that an e-mail bounced.",
  "email.complaint": "A delivery report says that the recipient reported an e-mail as spam.",
  "email.rejected": "The mail server rejected an e-mail permanently.",
  "email.dataSourceHook":
    "A hook of a data source sent an e-mail, or could not send it to all its recipients. Then `detail` has the reason.",
  "email.validate": "The service sent an app user a code for a sign-in by e-mail.",
};

/** Event types that no source file contains in full, by the template literal from which the code builds them. */
const COMPOSED_EVENT_TYPES: Record<string, readonly string[]> = {
  "app.alert.${verb}": ["app.alert.create", "app.alert.update"],
  "media.${kind}.accessRules": ["media.file.accessRules", "media.folder.accessRules"],
};
const AUDIT_TYPE_PATTERN =
  /["`]((?:app|appAction|dataSource|media|token|person|member|invitation|administrator|organization)\.[\w.${}]+)["`]/g;

/** Types of audit log entries that SQL statements write: changes of entries, and one that a migration wrote. */
const AUDIT_TYPES_IN_SQL: readonly string[] = [ENTRIES_CHANGED_AUDIT_TYPE, "dataSource.notUsers"];

function collectAuditTypes(
  root: string,
  writerCalls: readonly string[],
  additionalTypes: readonly string[] = [],
): string[] {
  const texts = globSync("src/operations/**/*.ts", { cwd: root }).map((file) => readFileSync(join(root, file), "utf8"));
  const foundTypes = texts
    .filter((text) => writerCalls.some((writerCall) => text.includes(writerCall)))
    .flatMap((text) => [...text.matchAll(AUDIT_TYPE_PATTERN)].map(([, type]) => type!))
    .flatMap((type) => COMPOSED_EVENT_TYPES[type] ?? [type])
    .filter((type) => type !== "app.id");
  return [...new Set([...foundTypes, ...additionalTypes])].sort();
}

export function buildEventsPage(root: string): string {
  const rows = LOG_EVENT_TYPES.map((type) => [formatInlineCode(type), EVENT_MEANINGS[type] ?? ""]);
  const list = (types: readonly string[]) => types.map(formatInlineCode).join(", ");
  const lead =
    'For authors of `log` triggers. The trigger `{"trigger": "log", "where": {"type": "dataSource.entry.create"}}` starts an action for each event of this type. The service itself stores the events of this table. Your back end can store events of other types with `POST /v1/apps/:appId/logs`. The name of such a type cannot begin with `app.task.`.';
  return buildReferencePage("Log events", lead, "the code", [
    formatMarkdownTable(["type", "stored when"], rows),
    "## Execution log",
    "When a run ends, the execution log gets an entry of the type `app.task.completed` or `app.task.failed`. Entries of the execution log cannot start an action. To get a message about failed runs, use [alerts](alerts.md). To send errors to another system, catch them in the code of the action, or let a program read `GET /v3/apps/:appId/runs?state=failed`.",
    "## Audit log",
    `The audit log records changes that people, tokens and server actions make. Entries of the audit log cannot start an action, but a program can read them. \`GET /v1/apps/:id/audit\` lists the entries of an app ([example](../guides/who-changed-what.md)). Entries of an app have these types: ${list(collectAuditTypes(root, ["recordChange(", "recordMediaChange("], AUDIT_TYPES_IN_SQL))}.`,
    `\`GET /v1/organizations/:id/audit\` lists the audit log of an organization: changes of the organization and its people, and their sign-ins. Entries of an organization have these types: ${list(collectAuditTypes(root, ["recordAccessEvent("]))}.`,
  ]);
}
