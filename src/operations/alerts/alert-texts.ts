/**
 * Texts of an alert for people and programs: they contain names, numbers and a URL of Studio, but never an error,
 * console output or payload of a run.
 */
import type { WatchedRule } from "./alert-rows.js";

/** Data from which the texts of an alert message are built. */
export interface AlertFacts {
  rule: Pick<WatchedRule, "id" | "appId" | "appName" | "name" | "condition">;
  state: "firing" | "recovered" | "test";
  action: { id: number; name: string } | null;
  reason: string;
  runId: number | null;
  at: Date;
}

/** Body of a webhook. */
export interface AlertBody {
  app: { id: number; name: string };
  rule: { id: number; name: string };
  condition: string;
  state: AlertFacts["state"];
  action: { id: number; name: string } | null;
  runId: number | null;
  text: string;
  studio: string;
  /** ISO 8601. */
  at: string;
}

/** Joins a text to one line, because names of authors may contain line breaks and a subject is one line. */
const line = (text: string): string => text.replace(/[\p{Cc}\u2028\u2029]+/gu, " ");

function alertSentence({ rule, state, action, reason }: AlertFacts): string {
  const alertSubject = action ? `${rule.appName}, ${action.name}` : rule.appName;
  if (state === "test") return line(`${rule.appName}: this is a test of the alert ${rule.name}`);
  return line(state === "firing" ? `${alertSubject}: ${reason}` : `${alertSubject}: recovered (${rule.name})`);
}

export function alertBody(facts: AlertFacts, baseUrl: string): AlertBody {
  const { rule, state, action, runId, at } = facts;
  const linkPath = action ? `actions/${action.id}` : "log";
  return {
    app: { id: rule.appId, name: rule.appName },
    rule: { id: rule.id, name: rule.name },
    condition: rule.condition,
    state,
    action,
    runId,
    text: alertSentence(facts),
    studio: `${baseUrl}/studio#/${rule.appId}/${linkPath}`,
    at: at.toISOString(),
  };
}

/** Escapes `&`, `<` and `>`, which Slack interprets. */
const escapeSlackText = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

export function slackBody({ text, state, studio }: AlertBody): { text: string } {
  const statusEmoji = { firing: ":red_circle:", recovered: ":large_green_circle:", test: ":white_circle:" }[state];
  return { text: `${statusEmoji} ${escapeSlackText(text)} <${studio}|Studio>` };
}

/** Returns the text of the e-mail about an alert. */
export function mailText({ text, rule, runId, studio, at }: AlertBody): string {
  const run = runId === null ? "" : `\nRun: ${runId}`;
  return `${text}\n\nAlert: ${line(rule.name)}${run}\nAt: ${at}\nStudio: ${studio}\n`;
}
