/** Operations of callers on an app's alert rules: create, change, remove, list, send a test message. */
import type { EntityManager } from "typeorm";
import { type Db, isUniqueViolation, rows } from "../../data/database.js";
import { ActionError, createRateLimitError } from "../../errors.js";
import { ALERT_RULES_PER_APP } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { type AlertRuleFields, parseAlertRule } from "../../rules/alert-input.js";
import { type ExpectedVersions, requireExpectedVersion } from "../../rules/precondition.js";
import { recordChange } from "../records/audit.js";
import { transactWithAppLock } from "../settings/app-lock.js";
import type { AlertDeliverer as Delivery } from "./alert-delivery.js";
import {
  type AlertDelivery,
  type AlertRule,
  deleteAlertRuleRow,
  insertAlertRuleRow,
  readAlertDeliveries,
  readAlertRules,
  updateAlertRuleRow,
} from "./alert-rows.js";
import type { SendAlert } from "./alert-sender.js";

const MAX_LISTED_DELIVERIES = 20;
/** The service rejects a test message if the app has already created this number of alert messages or more in the last minute. */
const MAX_MESSAGES_PER_MINUTE_FOR_TEST = 10;

/** The alert rule to change, and the ETags that the request accepts (`If-Match`). */
export interface AlertRuleChangeTarget {
  appId: number;
  id: number;
  precondition?: ExpectedVersions;
}

interface AlertRulesOptions {
  db: Db;
  delivery: Pick<Delivery, "readDestination">;
  sendAlert: SendAlert;
  now: () => number;
}

const createNotFoundError = (): ActionError => new ActionError("NOT_FOUND", "no alert of this app has this ID");

/**
 * Locks the alert rule until the transaction ends, and returns it.
 * @throws NOT_FOUND, RESOURCE_CHANGED
 */
async function lockRule(
  manager: EntityManager,
  { appId, id, precondition }: AlertRuleChangeTarget,
): Promise<AlertRule> {
  const sql = "SELECT FROM alert_rule WHERE app_id = $1 AND id = $2 FOR NO KEY UPDATE";
  if ((await rows(manager, sql, [appId, id])).length === 0) throw createNotFoundError();
  const [rule] = await readAlertRules(manager, appId, id);
  requireExpectedVersion(rule!, precondition);
  return rule!;
}

/** Checks that the app may send a test message now. @throws RATE_LIMIT_EXCEEDED */
async function requireMessageCapacity(manager: EntityManager, appId: number): Promise<void> {
  const sql = "SELECT FROM alert_delivery WHERE app_id = $1 AND created_at > now() - interval '1 minute'";
  if ((await rows(manager, sql, [appId])).length < MAX_MESSAGES_PER_MINUTE_FOR_TEST) return;
  throw createRateLimitError(
    `the app has sent ${MAX_MESSAGES_PER_MINUTE_FOR_TEST} or more alert messages in the last minute; test the alert again in 60 s`,
    60,
  );
}

export class AlertRules {
  constructor(private readonly options: AlertRulesOptions) {}

  /** Checks the rule's action and setting. @throws ACTION_NOT_FOUND; REQUEST_INVALID if an enabled rule has no valid destination */
  private async checkReferences(
    appId: number,
    { actionId, channel, setting, enabled }: AlertRuleFields,
  ): Promise<void> {
    const { db, delivery } = this.options;
    // A rule that is not enabled needs no destination: its setting may be removed or, in a new stage, still empty.
    if (setting !== null && enabled) await delivery.readDestination(appId, setting, channel);
    if (actionId === null) return;
    const sql = "SELECT FROM action WHERE id = $1 AND app_id = $2 AND master_id IS NULL";
    if ((await rows(db, sql, [actionId, appId])).length === 0) throw new ActionError("ACTION_NOT_FOUND");
  }

  /**
   * Runs `work` while the app is locked, so that concurrent requests cannot exceed limits. Writes an audit entry unless `work` returns
   * null.
   */
  private async writeRule<Id extends number | null>(
    caller: Caller,
    appId: number,
    verb: string,
    work: (manager: EntityManager) => Promise<Id>,
  ): Promise<Id> {
    try {
      return await transactWithAppLock(this.options.db, appId, async (manager) => {
        const ruleId = await work(manager);
        if (ruleId !== null)
          await recordChange(manager, caller, { appId, type: `app.alert.${verb}`, data: { ruleId } });
        return ruleId;
      });
    } catch (error) {
      if (isUniqueViolation(error))
        throw new ActionError("REQUEST_INVALID", '"name" must be unique; another alert of this app has the same name');
      throw error;
    }
  }

  /** Lists the app's alert rules, sorted by name. Each rule contains the actions for which it is firing now. */
  list(appId: number): Promise<AlertRule[]> {
    return readAlertRules(this.options.db, appId);
  }

  async find(appId: number, id: number): Promise<AlertRule> {
    const [rule] = await readAlertRules(this.options.db, appId, id);
    if (!rule) throw createNotFoundError();
    return rule;
  }

  /** Lists the newest messages of an alert rule, the newest first. @throws ActionError NOT_FOUND */
  async listDeliveries(appId: number, id: number): Promise<AlertDelivery[]> {
    await this.find(appId, id);
    return readAlertDeliveries(this.options.db, id, MAX_LISTED_DELIVERIES);
  }

  /** Creates an alert rule. @throws REQUEST_INVALID, ACTION_NOT_FOUND */
  async create(caller: Caller, appId: number, body: unknown): Promise<AlertRule> {
    const input = parseAlertRule(body);
    await this.checkReferences(appId, input);
    const id = await this.writeRule(caller, appId, "create", async (manager) => {
      if ((await readAlertRules(manager, appId)).length >= ALERT_RULES_PER_APP) {
        throw new ActionError(
          "REQUEST_INVALID",
          `an app can have at most ${ALERT_RULES_PER_APP} alert rules; remove one first`,
        );
      }
      return insertAlertRuleRow(manager, appId, input);
    });
    return this.find(appId, id);
  }

  /** Changes an alert rule. Returns false, and changes nothing, if another request changes the rule at the same time. */
  private async tryUpdate(
    caller: Caller,
    { appId, id, precondition }: AlertRuleChangeTarget,
    body: unknown,
  ): Promise<boolean> {
    const before = await this.find(appId, id);
    const input = parseAlertRule(body, before);
    await this.checkReferences(appId, input);
    const changedId = await this.writeRule<number | null>(caller, appId, "update", async (manager) => {
      const { updatedAt } = await lockRule(manager, { appId, id, precondition });
      if (updatedAt !== before.updatedAt) return null;
      await updateAlertRuleRow(manager, id, input);
      return id;
    });
    return changedId !== null;
  }

  /**
   * Changes an alert rule and resets its state. Fields that are missing in `body` keep their values.
   * @throws the errors of `create`, NOT_FOUND, RESOURCE_CHANGED
   */
  async update(caller: Caller, target: AlertRuleChangeTarget, body: unknown): Promise<AlertRule> {
    while (!(await this.tryUpdate(caller, target, body)));
    return this.find(target.appId, target.id);
  }

  /** Deletes an alert rule. @throws NOT_FOUND, RESOURCE_CHANGED */
  async remove(caller: Caller, target: AlertRuleChangeTarget): Promise<void> {
    const { appId, id } = target;
    await this.writeRule(caller, appId, "delete", async (manager) => {
      await lockRule(manager, target);
      await deleteAlertRuleRow(manager, appId, id);
      return id;
    });
  }

  /**
   * Queues a test message of an alert rule. The text of the message says that it is a test.
   * @throws NOT_FOUND, REQUEST_INVALID, RATE_LIMIT_EXCEEDED, ACTION_NOT_FOUND
   */
  async test(caller: Caller, appId: number, id: number): Promise<AlertDelivery> {
    const { db, sendAlert, now } = this.options;
    const rule = await this.find(appId, id);
    await this.checkReferences(appId, rule);
    const [app] = await rows<{ name: string }>(db, "SELECT name FROM app WHERE id = $1", [appId]);
    if (!app) throw new ActionError("APP_NOT_FOUND");
    let delivery: AlertDelivery;
    await this.writeRule(caller, appId, "test", async (manager) => {
      await requireMessageCapacity(manager, appId);
      const namedRule = { ...rule, appName: app.name };
      const testFacts = { rule: namedRule, action: null, reason: "", runId: null, at: new Date(now()) };
      await sendAlert(manager, rule, { ...testFacts, state: "test" });
      // Reads the message before the commit, because another process may send it and change its status right after the commit.
      [delivery] = (await readAlertDeliveries(manager, id, 1)) as [AlertDelivery];
      return id;
    });
    return delivery!;
  }
}
