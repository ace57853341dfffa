/**
 * Composes the texts of an alert for people and programs. The texts contain names, numbers and a URL of Studio. They
 * never contain an error, console output or the payload of a run.
 */
import type { WatchedAlertRule } from "./alert-rows.js";

export interface AlertFacts {
  rule: Pick<WatchedAlertRule, "id" | "appId" | "appName" | "name" | "condition">;
  state: "firing" | "recovered" | "test";
  action: { id: number; name: string } | null;
  reason: string;
  runId: number | null;
  at: Date;
}

/** JSON body of an alert that is sent to a webhook. */
export interface AlertBody {
  app: { id: number; name: string };
  rule: { id: number; name: string };
  condition: string;
  state: AlertFacts["state"];
  action: { id: number; name: string } | null;
  runId: number | null;
  text: string;
  studio: string;
  /** Time at which the service created the message, ISO 8601. */
  at: string;
}

/** Replaces line breaks and control characters by spaces. Names may contain line breaks, but the subject of an e-mail must be one line. */
const toSingleLine = (text: string): string => text.replace(/[\p{Cc}\u2028\u2029]+/gu, " ");

function composeAlertSentence({ rule, state, action, reason }: AlertFacts): string {
  const alertSubject = action ? `${rule.appName}, ${action.name}` : rule.appName;
  if (state === "test") return toSingleLine(`${rule.appName}: this is a test of the alert ${rule.name}`);
  return toSingleLine(state === "firing" ? `${alertSubject}: ${reason}` : `${alertSubject}: recovered (${rule.name})`);
}

export function composeAlertBody(facts: AlertFacts, baseUrl: string): AlertBody {
  const { rule, state, action, runId, at } = facts;
  const linkPath = action ? `actions/${action.id}` : "log";
  return {
    app: { id: rule.appId, name: rule.appName },
    rule: { id: rule.id, name: rule.name },
    condition: rule.condition,
    state,
    action,
    runId,
    text: composeAlertSentence(facts),
    studio: `${baseUrl}/studio#/${rule.appId}/${linkPath}`,
    at: at.toISOString(),
  };
}

/** Escapes the characters `&`, `<` and `>`, which Slack would interpret as markup. */
const escapeSlackText = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

export function composeSlackBody({ text, state, studio }: AlertBody): { text: string } {
  const statusEmoji = { firing: ":red_circle:", recovered: ":large_green_circle:", test: ":white_circle:" }[state];
  return { text: `${statusEmoji} ${escapeSlackText(text)} <${studio}|Studio>` };
}

export function composeMailText({ text, rule, runId, studio, at }: AlertBody): string {
  const run = runId === null ? "" : `\nRun: ${runId}`;
  return `${text}\n\nAlert: ${toSingleLine(rule.name)}${run}\nAt: ${at}\nStudio: ${studio}\n`;
}
