/**
 * Plans the changes to an app's alerts that a manifest requires. In a manifest, alerts refer to actions by name. The
 * value of an alert's setting is not checked, because it is not in the manifest.
 */
import { isDeepStrictEqual } from "node:util";
import { type Executor, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { ALERT_RULES_PER_APP } from "../../limits.js";
import { type AlertInput, parseAlertInput } from "../../rules/alert-input.js";
import { describeValue } from "../../rules/described.js";
import { ALERT_FIELDS, type Manifest } from "../../rules/manifest.js";
import { type AlertRule, deleteRule, insertRule, updateRule } from "../alerts/alert-rows.js";
import { recordChange } from "../records/audit.js";
import { type PartPlan, type PlanContext, repeatedNames, toFault } from "./part.js";

type Item = NonNullable<Manifest["alerts"]>[number];

/** An alert of the app, and the name of its action. */
export interface NamedRule {
  rule: AlertRule;
  action: string | null;
}

export function alertItem({ rule, action }: NamedRule): Item {
  const { name, condition, failures, of, minutes, channel, to, setting, enabled } = rule;
  return { name, condition, action, failures, of, minutes, channel, to, setting, enabled };
}

/**
 * Stands for the ID of an action while an alert is validated. The ID is looked up by name when the alert is written.
 */
const SOME_ACTION = 1;

function inputOf(item: Item, actions: ReadonlySet<string>, before?: NamedRule): AlertInput {
  const { action = before?.action ?? null, ...rest } = item;
  if (action !== null && !actions.has(action)) {
    throw new ActionError(
      "ACTION_NOT_FOUND",
      `action must be the name of an action of the app (got ${describeValue(action)})`,
    );
  }
  const stored = before && { ...before.rule, actionId: null };
  return parseAlertInput({ ...rest, actionId: action === null ? null : SOME_ACTION }, stored);
}

async function actionIds(executor: Executor, appId: number, names: string[]): Promise<Map<string, number>> {
  const sql = "SELECT id, name FROM action WHERE app_id = $1 AND master_id IS NULL AND name = ANY ($2::text[])";
  const actionRows = await rows<{ id: number; name: string }>(executor, sql, [appId, names]);
  return new Map(actionRows.map(({ id, name }) => [name, id]));
}

interface AlertWrite {
  before: NamedRule | undefined;
  input: AlertInput;
  action: string | null;
}

/** Plans the changes of alerts. @param actions names of the app's actions after the manifest has been applied */
export function planAlerts(
  { manager, caller, appId, prune }: PlanContext,
  items: readonly Item[] | undefined,
  current: readonly NamedRule[],
  actions: ReadonlySet<string>,
): PartPlan {
  const plan: PartPlan = { changes: [], faults: [], requiredOperations: [], apply: async () => undefined };
  if (items === undefined) return plan;
  const currentByName = new Map(current.map((namedRule) => [namedRule.rule.name, namedRule]));
  const writes: AlertWrite[] = [];
  plan.faults = repeatedNames("alerts", "name", items);
  for (const [at, item] of items.entries()) {
    try {
      const before = currentByName.get(item.name);
      const input = inputOf(item, actions, before);
      const action = item.action === undefined ? (before?.action ?? null) : item.action;
      const alertAfter = alertItem({ rule: { ...before?.rule, ...input } as AlertRule, action });
      if (before && isDeepStrictEqual(alertItem(before), alertAfter)) continue;
      writes.push({ before, input, action });
      plan.changes.push({ kind: "alert", name: item.name, verb: before ? "changed" : "created" });
    } catch (error) {
      plan.faults.push(toFault(`alerts[${at}]`, error, ALERT_FIELDS));
    }
  }
  const namesInManifest = new Set(items.map(({ name }) => name));
  const removedAlerts = prune ? current.filter(({ rule }) => !namesInManifest.has(rule.name)) : [];
  const count = current.length - removedAlerts.length + writes.filter(({ before }) => !before).length;
  if (count > ALERT_RULES_PER_APP) {
    const error = `an app can have at most ${ALERT_RULES_PER_APP} alerts (with this manifest: ${count})`;
    plan.faults.push({ path: "alerts", status: "REQUEST_INVALID", error });
  }
  plan.changes.push(
    ...removedAlerts.map(({ rule }) => ({ kind: "alert" as const, name: rule.name, verb: "removed" as const })),
  );
  if (writes.length > 0) plan.requiredOperations.push("manageAlerts");
  if (removedAlerts.length > 0) plan.requiredOperations.push("removeAlerts");
  plan.apply = async () => {
    // Alerts are locked in the order of their IDs, as by the job that checks alerts, so that the two cannot deadlock.
    await rows(manager, "SELECT FROM alert_rule WHERE app_id = $1 ORDER BY id FOR NO KEY UPDATE", [appId]);
    for (const { rule } of removedAlerts) {
      await deleteRule(manager, appId, rule.id);
      await recordChange(manager, caller, { appId, type: "app.alert.delete", data: { ruleId: rule.id } });
    }
    const names = writes.flatMap(({ action }) => (action === null ? [] : [action]));
    const ids = await actionIds(manager, appId, names);
    for (const { before, input, action } of writes) {
      const writtenInput = { ...input, actionId: action === null ? null : ids.get(action)! };
      if (before) await updateRule(manager, before.rule.id, writtenInput);
      const ruleId = before?.rule.id ?? (await insertRule(manager, appId, writtenInput));
      const verb = before ? "update" : "create";
      await recordChange(manager, caller, { appId, type: `app.alert.${verb}`, data: { ruleId } });
    }
  };
  return plan;
}
