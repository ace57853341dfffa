/**
 * Plans how an app's alerts must change to match a manifest. In a manifest, an alert contains the name of its action instead of the ID.
 * Does not check the value of the setting that an alert uses, because a manifest never contains this value.
 */
import { isDeepStrictEqual } from "node:util";
import { rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { ALERT_RULES_PER_APP } from "../../limits.js";
import { type AlertRuleFields, parseAlertRule, QUEUED_ACTION_EXPECTATION } from "../../rules/alert-input.js";
import { describeValue } from "../../rules/describe-value.js";
import { refuseField } from "../../rules/fields.js";
import { ALERT_FIELDS, type Manifest } from "../../rules/manifest.js";
import { type AlertRule, deleteAlertRuleRow, insertAlertRuleRow, updateAlertRuleRow } from "../alerts/alert-rows.js";
import { recordChange } from "../records/audit.js";
import {
  type DefinitionsPlan,
  findRepeatedNameFaults,
  type ManifestPlanContext,
  toPathFault,
  trimItemName,
} from "./definitions-plan.js";

type AlertItem = NonNullable<Manifest["alerts"]>[number];

/** An alert of the app with the name of its action; the name is null for an alert on all actions. */
export interface AlertWithActionName {
  rule: AlertRule;
  actionName: string | null;
}

export function toAlertItem({ rule, actionName }: AlertWithActionName): AlertItem {
  const { name, condition, failures, of, minutes, channel, to, setting, enabled } = rule;
  return { name, condition, action: actionName, failures, of, minutes, channel, to, setting, enabled };
}

/** Placeholder for the ID of an action while an alert is validated. The real ID is found by the action's name during the write. */
const PLACEHOLDER_ACTION_ID = 1;

function toAlertInput(
  item: AlertItem,
  actionNames: ReadonlySet<string>,
  before?: AlertWithActionName,
): AlertRuleFields {
  const { action = before?.actionName ?? null, ...rest } = item;
  if (action !== null && !actionNames.has(action)) {
    throw new ActionError(
      "ACTION_NOT_FOUND",
      `action must be the name of an action of the app (got ${describeValue(action)})`,
    );
  }
  if (action !== null && (rest.condition ?? before?.rule.condition) === "queued")
    refuseField("action", QUEUED_ACTION_EXPECTATION, action);
  const currentRule = before && { ...before.rule, actionId: null };
  return parseAlertRule({ ...rest, actionId: action === null ? null : PLACEHOLDER_ACTION_ID }, currentRule);
}

async function readActionIds(executor: SqlClient, appId: number, names: string[]): Promise<Map<string, number>> {
  const sql = "SELECT id, name FROM action WHERE app_id = $1 AND master_id IS NULL AND name = ANY ($2::text[])";
  const actionRows = await rows<{ id: number; name: string }>(executor, sql, [appId, names]);
  return new Map(actionRows.map(({ id, name }) => [name, id]));
}

interface AlertWrite {
  currentAlert: AlertWithActionName | undefined;
  input: AlertRuleFields;
  actionName: string | null;
}

/**
 * Plans how the app's alerts change.
 * @param actionNames names of the actions that the app has after the manifest was applied
 */
export function planAlertChanges(
  { manager, caller, appId, prune }: ManifestPlanContext,
  alertItems: readonly AlertItem[] | undefined,
  currentAlerts: readonly AlertWithActionName[],
  actionNames: ReadonlySet<string>,
): DefinitionsPlan {
  const plan: DefinitionsPlan = { changes: [], faults: [], requiredOperations: [], apply: async () => undefined };
  if (alertItems === undefined) return plan;
  const items = alertItems.map(trimItemName);
  const currentByName = new Map(currentAlerts.map((namedRule) => [namedRule.rule.name, namedRule]));
  const writes: AlertWrite[] = [];
  plan.faults = findRepeatedNameFaults("alerts", "name", items);
  for (const [at, item] of items.entries()) {
    try {
      const before = currentByName.get(item.name);
      const input = toAlertInput(item, actionNames, before);
      const action = item.action === undefined ? (before?.actionName ?? null) : item.action;
      const alertAfter = toAlertItem({ rule: { ...before?.rule, ...input } as AlertRule, actionName: action });
      if (before && isDeepStrictEqual(toAlertItem(before), alertAfter)) continue;
      writes.push({ currentAlert: before, input, actionName: action });
      plan.changes.push({ kind: "alert", name: item.name, changeKind: before ? "changed" : "created" });
    } catch (error) {
      plan.faults.push(toPathFault(`alerts[${at}]`, error, ALERT_FIELDS));
    }
  }
  const namesInManifest = new Set(items.map(({ name }) => name));
  const removedAlerts = prune ? currentAlerts.filter(({ rule }) => !namesInManifest.has(rule.name)) : [];
  const count = currentAlerts.length - removedAlerts.length + writes.filter(({ currentAlert }) => !currentAlert).length;
  if (count > ALERT_RULES_PER_APP) {
    const error = `an app can have at most ${ALERT_RULES_PER_APP} alert rules (got ${count} with this manifest)`;
    plan.faults.push({ path: "alerts", status: "REQUEST_INVALID", error });
  }
  plan.changes.push(
    ...removedAlerts.map(({ rule }) => ({ kind: "alert" as const, name: rule.name, changeKind: "removed" as const })),
  );
  if (writes.length > 0) plan.requiredOperations.push("manageAlerts");
  if (removedAlerts.length > 0) plan.requiredOperations.push("removeAlerts");
  plan.removeReferences = async () => {
    // Locks the alerts in the order of their IDs, like the job that checks alerts. The same order prevents deadlocks.
    await rows(manager, "SELECT FROM alert_rule WHERE app_id = $1 ORDER BY id FOR NO KEY UPDATE", [appId]);
    // Removes the reference of each changed alert to its action. Otherwise the removal of this action would delete the alert.
    const ids = writes.flatMap(({ currentAlert }) => currentAlert?.rule.id ?? []);
    await rows(manager, "UPDATE alert_rule SET action_id = NULL WHERE id = ANY ($1::bigint[])", [ids]);
  };
  plan.apply = async () => {
    for (const { rule } of removedAlerts) {
      await deleteAlertRuleRow(manager, appId, rule.id);
      await recordChange(manager, caller, { appId, type: "app.alert.delete", data: { ruleId: rule.id } });
    }
    const names = writes.flatMap(({ actionName: action }) => (action === null ? [] : [action]));
    const ids = await readActionIds(manager, appId, names);
    for (const { currentAlert, input, actionName } of writes) {
      const writtenInput = { ...input, actionId: actionName === null ? null : ids.get(actionName)! };
      if (currentAlert) await updateAlertRuleRow(manager, currentAlert.rule.id, writtenInput);
      const ruleId = currentAlert?.rule.id ?? (await insertAlertRuleRow(manager, appId, writtenInput));
      const verb = currentAlert ? "update" : "create";
      await recordChange(manager, caller, { appId, type: `app.alert.${verb}`, data: { ruleId } });
    }
  };
  return plan;
}
