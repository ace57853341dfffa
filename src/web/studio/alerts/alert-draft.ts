/**
 * Converts an alert to the values of the form (the draft), and the draft to the service's input. Pure functions.
 */
import type { Alert, AlertInput } from "../shared/model.js";

export type AlertCondition = Alert["condition"];
export type AlertChannel = Alert["channel"];

export interface AlertDraft {
  name: string;
  condition: AlertCondition;
  /** ID of the action to watch, or "" to watch all actions of the app. The condition "queued" always watches all actions. */
  actionId: string;
  failures: string;
  of: string;
  minutes: string;
  channel: AlertChannel;
  /** E-mail addresses of the recipients, separated by commas. */
  to: string;
  setting: string;
  enabled: boolean;
}

export const ALERT_CONDITION_LABELS: [AlertCondition, string][] = [
  ["failed", "Runs fail"],
  ["silent", "No run succeeds for some time"],
  ["skipped", "A scheduled run is skipped or overdue"],
  ["queued", "Runs are queued for some time"],
];

export const ALERT_CHANNEL_LABELS: [AlertChannel, string][] = [
  ["email", "E-mail"],
  ["webhook", "Signed webhook"],
  ["slack", "Slack"],
];

export function alertToDraft(alert: Alert | null): AlertDraft {
  return {
    name: alert?.name ?? "",
    condition: alert?.condition ?? "failed",
    actionId: String(alert?.actionId ?? ""),
    failures: String(alert?.failures ?? 1),
    of: String(alert?.of ?? 1),
    minutes: String(alert?.minutes ?? 60),
    channel: alert?.channel ?? "email",
    to: alert?.to.join(", ") ?? "",
    setting: alert?.setting ?? "",
    enabled: alert?.enabled ?? true,
  };
}

export function alertDraftToInput(draft: AlertDraft): AlertInput {
  const { name, condition, channel, enabled } = draft;
  const numbers = { failures: Number(draft.failures), of: Number(draft.of), minutes: Number(draft.minutes) };
  const actionId = condition === "queued" || draft.actionId === "" ? null : Number(draft.actionId);
  const to = draft.to.split(",").map((address) => address.trim());
  const where = channel === "email" ? { to: to.filter((address) => address !== "") } : { setting: draft.setting };
  return { name, condition, channel, enabled, actionId, ...numbers, ...where };
}

export function describeAlertCondition({ condition, failures, of, minutes }: Alert): string {
  switch (condition) {
    case "failed":
      return of === 1 ? "a run failed" : `${failures} of the last ${of} runs failed`;
    case "silent":
      return `no success for ${minutes} minutes`;
    case "skipped":
      return "a scheduled run is skipped or overdue";
    default:
      return `runs are queued for ${minutes} minutes`;
  }
}
