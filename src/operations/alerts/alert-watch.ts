/**
 * Evaluates the alert rules with the runs that have ended since the last evaluation, and with the current state of schedules and queues.
 * Stores the rules' states, and queues messages. Any process can do this; a row lock prevents a double evaluation.
 */
import type { Logger } from "pino";
import type { EntityManager } from "typeorm";
import { type Db, rows } from "../../data/database.js";
import {
  type AlertCheckInput,
  type AlertRuleState,
  computeAlertStateAfterCheck,
  computeAlertStateAfterRun,
  type EndedRun,
  NEW_ALERT_STATE,
} from "../../rules/alert-conditions.js";
import {
  endAlertsOfUnpublishedActions,
  lockEnabledAlertRules,
  readAlertRuleStates,
  type StoredAlertRuleState,
  storeAlertRuleState,
  type WatchedAlertRule,
} from "./alert-rows.js";
import type { SendAlert } from "./alert-sender.js";

/** If no scheduler has claimed the next run time of a schedule for this long, the schedule is overdue. */
const OVERDUE_AGE = "interval '60 seconds'";
/** Ended runs are evaluated in windows of this length. After a long pause, only the last MAX_WATCH_WINDOWS are evaluated. */
const WATCH_WINDOW = "interval '1 minute'";
const MAX_WATCH_WINDOWS = 60;
/** Maximum number of messages that one rule sends in an hour. Limits the messages of a rule whose state changes often. */
const MAX_MESSAGES_PER_HOUR = 12;
const HOUR_MS = 3_600_000;
/** Value of `actionId` in a rule's state that belongs to the whole app. */
const WHOLE_APP_ACTION_ID = 0;

const LOCK_ALERT_CURSOR = `
  SELECT FROM alert_cursor WHERE looked_at <= now() - interval '10 seconds' FOR UPDATE SKIP LOCKED`;

/**
 * Selects the next window of ended runs. The window ends before the oldest open transaction started, because this transaction can still add
 * ended runs. But a transaction that is open for more than 35 s does not delay the evaluation.
 */
const SELECT_NEXT_WINDOW = `
  SELECT start::text AS start, least(start + ${WATCH_WINDOW}, safe)::text AS until, start + ${WATCH_WINDOW} < safe AS more
    FROM (SELECT greatest(looked_until, now() - ${MAX_WATCH_WINDOWS} * ${WATCH_WINDOW}) AS start,
                 greatest(least(now(), (SELECT min(xact_start) FROM pg_stat_activity
                                         WHERE backend_type = 'client backend' AND datname = current_database()))
                            - interval '1 microsecond',
                          now() - interval '35 seconds') AS safe
            FROM alert_cursor) AS bounds`;

/* Selects ended runs of live versions, with the IDs of their drafts. Finds them also if the live version was removed. */
const SELECT_ENDED_RUNS = `
  SELECT run.id, draft.id AS "actionId", run.app_id AS "appId", run.state, run.trigger = 'schedule' AS scheduled, run.reason,
         run.finished_at AS "finishedAt"
    FROM run JOIN action AS draft ON draft.live_id = run.action_id
   WHERE run.finished_at > $1 AND run.finished_at <= $2 AND run.app_id = ANY ($3::bigint[]) AND run.copy = 'production'
     AND run.state IN ('completed', 'failed', 'skipped') AND run.reason IS DISTINCT FROM 'app unpublished'
   ORDER BY run.finished_at, run.id`;

const SELECT_OVERDUE_SCHEDULES = `
  SELECT action.master_id AS "actionId", schedule.app_id AS "appId"
    FROM schedule JOIN action ON action.id = schedule.action_id JOIN app ON app.id = schedule.app_id
   WHERE schedule.next_tick < $1::timestamptz - ${OVERDUE_AGE} AND app.published_at IS NOT NULL AND schedule.app_id = ANY ($2::bigint[])`;

const SELECT_OLDEST_QUEUED_RUNS = `
  SELECT wanted.app_id AS "appId", extract(epoch FROM $1::timestamptz - first.queued_at)::float8 * 1000 AS ms
    FROM unnest($2::bigint[]) AS wanted (app_id)
    CROSS JOIN LATERAL (SELECT queued_at FROM run WHERE state = 'queued' AND run.app_id = wanted.app_id ORDER BY id LIMIT 1) AS first`;

type EndedRunOfApp = EndedRun & { appId: number };

/** Overdue schedules, and for each app the age of its oldest queued run in milliseconds. Contains only apps that have alert rules. */
interface ScheduleState {
  now: Date;
  overdueSchedules: readonly { actionId: number; appId: number }[];
  oldestQueuedMs: ReadonlyMap<number, number>;
}

/**
 * State of a rule for an action or the app, before and after this evaluation. If the rule began to fire during the evaluation,
 * `firstFiringState` is its state at that moment, even if the rule has recovered since then. Otherwise it is null.
 */
interface RuleEvaluation {
  rule: WatchedAlertRule;
  actionId: number;
  previousState: StoredAlertRuleState;
  currentState: AlertRuleState;
  firstFiringState: AlertRuleState | null;
}

const createEvaluationKey = (ruleId: number, actionId: number): string => `${ruleId}:${actionId}`;

/**
 * Returns the ID of the action whose state a run of `actionId` changes. Returns WHOLE_APP_ACTION_ID if the rule has one state for the whole
 * app, and null if the rule ignores the run.
 */
function findAffectedActionId(rule: WatchedAlertRule, actionId: number): number | null {
  if (rule.actionId !== null) return rule.actionId === actionId ? actionId : null;
  return rule.condition === "failed" || rule.condition === "skipped" ? actionId : WHOLE_APP_ACTION_ID;
}

class RuleEvaluations {
  private readonly all = new Map<string, RuleEvaluation>();
  private readonly rulesByApp: ReadonlyMap<number, readonly WatchedAlertRule[]>;

  constructor(rules: readonly WatchedAlertRule[], storedStates: readonly StoredAlertRuleState[]) {
    this.rulesByApp = Map.groupBy(rules, ({ appId }) => appId);
    const ruleById = new Map(rules.map((rule) => [rule.id, rule]));
    for (const before of storedStates) this.addEvaluation(ruleById.get(before.ruleId)!, before.actionId, before);
    for (const rule of rules) {
      if (rule.actionId !== null) this.getOrAdd(rule, rule.actionId);
      else if (rule.condition === "silent" || rule.condition === "queued") this.getOrAdd(rule, WHOLE_APP_ACTION_ID);
    }
  }

  private addEvaluation(rule: WatchedAlertRule, actionId: number, previousState: StoredAlertRuleState): RuleEvaluation {
    const evaluation = { rule, actionId, previousState, currentState: previousState, firstFiringState: null };
    this.all.set(createEvaluationKey(rule.id, actionId), evaluation);
    return evaluation;
  }

  private getOrAdd(rule: WatchedAlertRule, actionId: number): RuleEvaluation {
    const existing = this.all.get(createEvaluationKey(rule.id, actionId));
    return (
      existing ??
      this.addEvaluation(rule, actionId, {
        ...NEW_ALERT_STATE,
        ruleId: rule.id,
        actionId,
        isReported: false,
        firedAt: null,
      })
    );
  }

  private changeState(evaluation: RuleEvaluation, next: AlertRuleState): void {
    if (next.firing && !evaluation.currentState.firing) evaluation.firstFiringState ??= next;
    evaluation.currentState = next;
  }

  applyRun(run: EndedRunOfApp): void {
    for (const rule of this.rulesByApp.get(run.appId) ?? []) {
      const affectedId = run.finishedAt >= rule.since ? findAffectedActionId(rule, run.actionId) : null;
      if (affectedId === null) continue;
      const evaluation = this.getOrAdd(rule, affectedId);
      this.changeState(evaluation, computeAlertStateAfterRun(rule, evaluation.currentState, run));
    }
  }

  applyScheduleState({ now, overdueSchedules, oldestQueuedMs }: ScheduleState): void {
    for (const { actionId, appId } of overdueSchedules) {
      for (const rule of this.rulesByApp.get(appId) ?? [])
        if (rule.actionId === null) this.getOrAdd(rule, findAffectedActionId(rule, actionId)!);
    }
    for (const evaluation of this.all.values()) {
      const { rule, actionId } = evaluation;
      const isTickOverdue = overdueSchedules.some(
        (schedule) =>
          schedule.appId === rule.appId && (actionId === WHOLE_APP_ACTION_ID || schedule.actionId === actionId),
      );
      const checkInput: AlertCheckInput = {
        now,
        countedSince: rule.since,
        isTickOverdue,
        oldestQueuedMs: oldestQueuedMs.get(rule.appId) ?? 0,
      };
      this.changeState(evaluation, computeAlertStateAfterCheck(rule, evaluation.currentState, checkInput));
    }
  }

  list(): RuleEvaluation[] {
    return [...this.all.values()];
  }
}

interface AlertWatchOptions {
  db: Db;
  sendAlert: SendAlert;
  now: () => number;
  log: Logger;
}

async function readActionNames(manager: EntityManager, ids: readonly number[]): Promise<Map<number, string>> {
  const sql = "SELECT id, name FROM action WHERE id = ANY ($1::bigint[])";
  const actionNames = await rows<{ id: number; name: string }>(manager, sql, [ids]);
  return new Map(actionNames.map(({ id, name }) => [id, name]));
}

export class AlertWatch {
  constructor(private readonly options: AlertWatchOptions) {}

  private async readScheduleState(manager: EntityManager, appIds: readonly number[]): Promise<ScheduleState> {
    const checkedAt = new Date(this.options.now());
    const overdueSchedules = await rows<ScheduleState["overdueSchedules"][number]>(manager, SELECT_OVERDUE_SCHEDULES, [
      checkedAt,
      appIds,
    ]);
    const oldestQueued = await rows<{ appId: number; ms: number }>(manager, SELECT_OLDEST_QUEUED_RUNS, [
      checkedAt,
      appIds,
    ]);
    return {
      now: checkedAt,
      overdueSchedules,
      oldestQueuedMs: new Map(oldestQueued.map(({ appId, ms }) => [appId, ms])),
    };
  }

  /**
   * Queues the messages about a change of the rule's state, up to MAX_MESSAGES_PER_HOUR.
   * @returns true if a message said that the rule is firing and no later message said that it has recovered
   */
  private async queueMessages(
    manager: EntityManager,
    evaluation: RuleEvaluation,
    name: string | undefined,
  ): Promise<boolean> {
    const { sendAlert, now } = this.options;
    const { rule, actionId, previousState, currentState, firstFiringState } = evaluation;
    const at = new Date(now());
    const action = actionId === WHOLE_APP_ACTION_ID || name === undefined ? null : { id: actionId, name };
    let { isReported } = previousState;
    const reportAlert = async (state: "firing" | "recovered", { reason, runId }: AlertRuleState) => {
      rule.messageTimes = rule.messageTimes.filter((sentAt) => at.getTime() - sentAt.getTime() < HOUR_MS);
      if (rule.messageTimes.length >= MAX_MESSAGES_PER_HOUR) return;
      await sendAlert(manager, rule, { rule, state, action, reason: reason ?? "", runId, at });
      rule.messageTimes.push(at);
      isReported = state === "firing";
      await rows(manager, "UPDATE alert_rule SET told_at = $2 WHERE id = $1", [rule.id, rule.messageTimes]);
    };
    // If the rule started to fire and recovered since the last evaluation, sends a message about each of these changes.
    const first = firstFiringState ?? (currentState.firing ? currentState : null);
    if (!isReported && first) await reportAlert("firing", first);
    if (isReported && !currentState.firing) await reportAlert("recovered", currentState);
    return isReported;
  }

  private async evaluateRules(manager: EntityManager, rules: readonly WatchedAlertRule[]): Promise<void> {
    const appIds = [...new Set(rules.map(({ appId }) => appId))];
    const ruleIds = rules.map(({ id }) => id);
    await endAlertsOfUnpublishedActions(manager, ruleIds);
    const evaluations = new RuleEvaluations(rules, await readAlertRuleStates(manager, ruleIds));
    for (let windowCount = 0; windowCount < MAX_WATCH_WINDOWS; windowCount += 1) {
      const [{ start, until, more }] = (await rows<{ start: string; until: string; more: boolean }>(
        manager,
        SELECT_NEXT_WINDOW,
      )) as [{ start: string; until: string; more: boolean }];
      for (const run of await rows<EndedRunOfApp>(manager, SELECT_ENDED_RUNS, [start, until, appIds]))
        evaluations.applyRun(run);
      await rows(manager, "UPDATE alert_cursor SET looked_until = greatest(looked_until, $1::timestamptz)", [until]);
      if (!more) break;
    }
    evaluations.applyScheduleState(await this.readScheduleState(manager, appIds));
    const all = evaluations.list();
    const names = await readActionNames(
      manager,
      all.map(({ actionId }) => actionId),
    );
    for (const evaluation of all) await this.storeEvaluation(manager, evaluation, names);
  }

  /**
   * Queues the messages about a rule's state, and stores the state. An error, for example in one app's settings, does not affect other
   * apps. After an error, the next evaluation tries again.
   */
  private async storeEvaluation(
    manager: EntityManager,
    evaluation: RuleEvaluation,
    names: ReadonlyMap<number, string>,
  ): Promise<void> {
    const { now, log } = this.options;
    const { rule, actionId, previousState, currentState, firstFiringState } = evaluation;
    if (actionId !== WHOLE_APP_ACTION_ID && !names.has(actionId)) {
      const sql = "DELETE FROM alert_state WHERE rule_id = $1 AND action_id = $2";
      await rows(manager, sql, [rule.id, actionId]);
      return;
    }
    // Most states do not change, and need neither a message nor a savepoint.
    const isMessageDue = previousState.isReported
      ? !currentState.firing
      : currentState.firing || firstFiringState !== null;
    if (!isMessageDue && currentState === previousState) return;
    const isReported = await manager
      .transaction((inner) => this.queueMessages(inner, evaluation, names.get(actionId)))
      .catch((error: unknown) => {
        log.warn({ err: error, ruleId: rule.id }, "an alert message could not be queued; the next check tries again");
        return previousState.isReported;
      });
    if (currentState === previousState && isReported === previousState.isReported) return;
    const firedAt = currentState.firing
      ? previousState.firing && !firstFiringState
        ? previousState.firedAt
        : new Date(now())
      : null;
    await storeAlertRuleState(manager, { ...currentState, ruleId: rule.id, actionId, isReported, firedAt });
  }

  /** Evaluates all rules, unless a process is evaluating them or has evaluated them in the last 10 seconds. */
  async checkRules(): Promise<null> {
    await this.options.db.transaction(async (manager) => {
      if ((await rows(manager, LOCK_ALERT_CURSOR)).length === 0) return;
      const rules = await lockEnabledAlertRules(manager);
      if (rules.length > 0) await this.evaluateRules(manager, rules);
      else await rows(manager, "UPDATE alert_cursor SET looked_until = now()");
      await rows(manager, "UPDATE alert_cursor SET looked_at = now()");
    });
    return null;
  }
}
