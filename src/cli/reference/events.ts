/** Reference page of the log event types that start actions, and where each comes from. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { LOG_EVENT_TYPES } from "../../rules/trigger-match.js";
import { code, page, table } from "./tables.js";

const MEANING: Record<string, string> = {
  "app.analytics.event": "A page recorded an event.",
  "app.analytics.pageView": "A page recorded a page view.",
  "app.update": "Fields or settings of the app changed.",
  "app.view": "A page of the app was opened.",
  "dataSource.entry.create": "An entry was inserted.",
  "dataSource.entry.update": "An entry was changed.",
  "dataSource.entry.delete": "An entry was removed.",
  "dataSource.event": "Only if your back end stores it.",
  "dataSource.import": "An import or a restore ended, or one write changed more than 1,000 entries.",
  "mediaFile.create": "A file was uploaded.",
  "session.locale.updated": "An app user chose a language.",
  "ai.completions": "A language model was called.",
  "ai.image": "An image was generated.",
  "ai.audio": "Speech was transcribed.",
  "ai.embeddings": "Embeddings were computed.",
  "sms.2fa": "A second-factor code was sent by text message.",
  "sms.communicate": "An action sent a text message.",
  "sms.dataSourceHook": "A hook of a data source sent a text message.",
  "sms.validate": "A code was sent by text message.",
  "email.communicate": "An action sent an e-mail.",
  "email.delivered": "A delivery report says that an e-mail arrived.",
  "email.delayed": "The delivery of an e-mail was delayed.",
  "email.bounced": "A delivery report says that an e-mail bounced.",
  "email.complaint": "A delivery report says that the recipient reported an e-mail as spam.",
  "email.rejected": "The mail server rejected an e-mail for good.",
  "email.dataSourceHook": "A hook of a data source sent an e-mail.",
  "email.validate": "A code was sent by e-mail.",
};

/** Types of the audit log: each change by a person or a token, which `GET /v1/apps/:id/audit` lists. */
function auditTypes(root: string): string[] {
  const files = globSync("src/operations/**/*.ts", { cwd: root });
  const texts = files.map((file) => readFileSync(join(root, file), "utf8")).filter((text) => text.includes("audit"));
  const lines = texts.flatMap((text) => text.split("\n")).filter((line) => line.includes("type:"));
  const found = lines.flatMap((line) => [
    ...line.matchAll(/"((?:app|action|dataSource|organization|media)\.[\w.]+)"/g),
  ]);
  const named = found
    .map(([, type]) => type!)
    .filter((type) => !LOG_EVENT_TYPES.includes(type) && !type.startsWith("app.task."));
  return [...new Set(named)].sort();
}

export function eventsPage(root: string): string {
  const rows = LOG_EVENT_TYPES.map((type) => [code(type), MEANING[type] ?? ""]);
  const lead =
    'For authors of `log` triggers. `{"trigger": "log", "where": {"type": "dataSource.entry.create"}}` starts an action on each event of the type. `POST /v1/apps/:appId/logs` stores events of any other type that does not begin with `app.task.`.';
  return page("Log events", lead, "the code", [
    table(["type", "stored when"], rows),
    "## Execution log",
    "The execution log has two types: `app.task.completed` and `app.task.failed`, one entry for each ended run. They start no action: use [alerts](alerts.md).",
    "## Audit log",
    `Changes by people and tokens, which \`GET /v1/apps/:id/audit\` lists: ${auditTypes(root).map(code).join(", ")}.`,
  ]);
}
