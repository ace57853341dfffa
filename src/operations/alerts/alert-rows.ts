/** Reads and writes the database rows of alert rules, of their states and of their messages. */
import { rows, type SqlClient } from "../../data/database.js";
import type { AlertRuleState } from "../../rules/alert-conditions.js";
import type { AlertRuleFields } from "../../rules/alert-input.js";
import { NEXT_UPDATED_AT_SQL } from "../../rules/precondition.js";

/** PostgreSQL notification channel. A notification means that alert messages are waiting to be sent. */
export const QUEUED_ALERT_CHANNEL = "svc_alert";

/** The action for which an alert rule is firing now; if `actionId` is null, the rule is firing for the whole app. Times are ISO 8601. */
export interface AlertFiring {
  actionId: number | null;
  actionName: string | null;
  firedAt: string;
  reason: string;
  runId: number | null;
}

/** Status of an alert message. `outbox` stands for an e-mail, whose status is stored in the outbox. */
export type AlertDeliveryStatus = "queued" | "sent" | "failed" | "outbox";

export interface AlertDelivery {
  id: number;
  status: AlertDeliveryStatus;
  /** Text of the alert message. */
  text: string;
  /** Result of the last attempt to send the message, such as `HTTP 500`; null before the first attempt. */
  detail: string | null;
  attempts: number;
  createdAt: string;
}

export interface AlertRule extends AlertRuleFields {
  id: number;
  appId: number;
  firing: AlertFiring[];
  createdAt: string;
  updatedAt: string;
}

export interface WatchedAlertRule extends AlertRuleFields {
  id: number;
  appId: number;
  appName: string;
  /** Time at which the rule was created or last changed. The evaluation ignores runs that ended before. */
  since: Date;
  /** Times of this rule's messages in the hour before its last message. */
  messageTimes: Date[];
}

export interface StoredAlertRuleState extends AlertRuleState {
  ruleId: number;
  /** ID of the action to which this state of the rule belongs; 0 for the state of the whole app. */
  actionId: number;
  /** True if the rule's last message said that the rule is firing; false after a message about its recovery, and before any message. */
  isReported: boolean;
  firedAt: Date | null;
}

const RULE_COLUMNS = `rule.id, rule.app_id AS "appId", rule.name, rule.condition, rule.action_id AS "actionId", rule.failures, rule.of,
  rule.channel, rule.recipients AS "to", rule.setting, rule.enabled, rule.minutes`;

const FIRING_ACTIONS_JSON = `(SELECT coalesce(json_agg(json_build_object(
    'actionId', nullif(state.action_id, 0), 'actionName', action.name, 'firedAt', state.fired_at, 'reason', state.reason,
    'runId', state.run_id) ORDER BY state.action_id), '[]')
  FROM alert_state AS state LEFT JOIN action ON action.id = state.action_id
 WHERE state.rule_id = rule.id AND state.firing AND rule.enabled) AS firing`;

type AlertRuleRow = Omit<AlertRule, "createdAt" | "updatedAt"> & { createdAt: Date; updatedAt: Date };

function toAlertRule({ createdAt, updatedAt, firing, ...row }: AlertRuleRow): AlertRule {
  return {
    ...row,
    firing: firing.map((alert) => ({ ...alert, firedAt: new Date(alert.firedAt).toISOString() })),
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}

/** Reads the alert rules of an app, sorted by name; if `id` is set, only the rule with this ID. */
export async function readAlertRules(
  executor: SqlClient,
  appId: number,
  id: number | null = null,
): Promise<AlertRule[]> {
  const sql = `SELECT ${RULE_COLUMNS}, ${FIRING_ACTIONS_JSON}, rule.created_at AS "createdAt", rule.updated_at AS "updatedAt"
    FROM alert_rule AS rule WHERE rule.app_id = $1 AND ($2::bigint IS NULL OR rule.id = $2) ORDER BY rule.name`;
  return (await rows<AlertRuleRow>(executor, sql, [appId, id])).map(toAlertRule);
}

const listRuleColumnValues = (input: AlertRuleFields): unknown[] => {
  const { name, condition, actionId, failures, of, minutes, channel, to, setting, enabled } = input;
  return [name, condition, actionId, failures, of, minutes, channel, to, setting, enabled];
};

export async function insertAlertRuleRow(executor: SqlClient, appId: number, input: AlertRuleFields): Promise<number> {
  const sql = `INSERT INTO alert_rule (app_id, name, condition, action_id, failures, of, minutes, channel, recipients, setting, enabled)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING id`;
  return (await rows<{ id: number }>(executor, sql, [appId, ...listRuleColumnValues(input)]))[0]!.id;
}

/** Updates an alert rule. Also resets its state, because the state was computed with the old conditions. */
export async function updateAlertRuleRow(executor: SqlClient, id: number, input: AlertRuleFields): Promise<void> {
  const sql = `UPDATE alert_rule SET name = $2, condition = $3, action_id = $4, failures = $5, of = $6, minutes = $7, channel = $8,
    recipients = $9, setting = $10, enabled = $11, since = now(), updated_at = ${NEXT_UPDATED_AT_SQL} WHERE id = $1`;
  await rows(executor, sql, [id, ...listRuleColumnValues(input)]);
  await rows(executor, "DELETE FROM alert_state WHERE rule_id = $1", [id]);
}

export async function deleteAlertRuleRow(executor: SqlClient, appId: number, id: number): Promise<void> {
  await rows(executor, "DELETE FROM alert_rule WHERE app_id = $1 AND id = $2", [appId, id]);
}

/** Reads the newest `limit` messages of an alert rule, the newest first. */
export async function readAlertDeliveries(
  executor: SqlClient,
  ruleId: number,
  limit: number,
): Promise<AlertDelivery[]> {
  const sql = `SELECT id, status, body->>'text' AS text, detail, attempts, created_at AS "createdAt"
    FROM alert_delivery WHERE rule_id = $1 ORDER BY id DESC LIMIT $2`;
  const deliveryRows = await rows<AlertDelivery & { createdAt: Date }>(executor, sql, [ruleId, limit]);
  return deliveryRows.map((row) => ({ ...row, createdAt: row.createdAt.toISOString() }));
}

/**
 * Reads and locks all enabled alert rules until the transaction ends. All transactions must lock a rule before its states, so that no
 * deadlock can occur.
 */
export async function lockEnabledAlertRules(executor: SqlClient): Promise<WatchedAlertRule[]> {
  const sql = `SELECT ${RULE_COLUMNS}, app.name AS "appName", rule.since, rule.told_at AS "messageTimes"
    FROM alert_rule AS rule JOIN app ON app.id = rule.app_id WHERE rule.enabled ORDER BY rule.id FOR NO KEY UPDATE OF rule`;
  return rows(executor, sql);
}

/**
 * Ends the reported alerts about actions that are no longer published: no run of these actions could end the alerts. Affects rules for
 * `failed` and `skipped`. Rules for `silent` continue, because they watch for actions that do not run.
 */
export async function endAlertsOfUnpublishedActions(executor: SqlClient, ruleIds: readonly number[]): Promise<void> {
  const sql = `DELETE FROM alert_state AS state USING alert_rule AS rule
    WHERE rule.id = state.rule_id AND rule.id = ANY ($1::bigint[]) AND rule.condition IN ('failed', 'skipped')
      AND state.firing AND state.told AND NOT EXISTS (SELECT FROM action WHERE master_id = state.action_id)`;
  await rows(executor, sql, [ruleIds]);
}

export async function readAlertRuleStates(
  executor: SqlClient,
  ruleIds: readonly number[],
): Promise<StoredAlertRuleState[]> {
  const sql = `SELECT rule_id AS "ruleId", action_id AS "actionId", outcomes, last_success AS "lastSuccess", firing, told AS "isReported",
      fired_at AS "firedAt", reason, run_id AS "runId" FROM alert_state WHERE rule_id = ANY ($1::bigint[])`;
  return rows(executor, sql, [ruleIds]);
}

export async function storeAlertRuleState(executor: SqlClient, ruleState: StoredAlertRuleState): Promise<void> {
  const sql = `INSERT INTO alert_state (rule_id, action_id, outcomes, last_success, firing, told, fired_at, reason, run_id)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT (rule_id, action_id) DO UPDATE SET outcomes = excluded.outcomes, last_success = excluded.last_success,
      firing = excluded.firing, told = excluded.told, fired_at = excluded.fired_at, reason = excluded.reason, run_id = excluded.run_id`;
  const { ruleId, actionId, outcomes, lastSuccess, firing, isReported, firedAt, reason, runId } = ruleState;
  await rows(executor, sql, [ruleId, actionId, outcomes, lastSuccess, firing, isReported, firedAt, reason, runId]);
}
