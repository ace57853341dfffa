/** Alerts over GraphQL. Each method: the gate, then one call. */
import { Arg, Ctx, Int, Mutation, Query, Resolver } from "type-graphql";
import type { Gate } from "../../operations/access/gate.js";
import type { AlertRules } from "../../operations/alerts/alert-rules.js";
import type { RequestContext } from "../context.js";
import { AlertDeliveryType, AlertRuleInput, AlertRuleType } from "./alert-types.js";
import { IfUpdatedAt, preconditionOf, type StateGiven } from "./if-updated-at.js";

@Resolver(() => AlertRuleType)
export class AlertResolver {
  constructor(
    private readonly gate: Gate,
    private readonly rules: AlertRules,
  ) {}

  @Query(() => [AlertRuleType], { description: "The app's alerts, by name." })
  async alertRules(@Ctx() context: RequestContext, @Arg("appId", () => Int) appId: number): Promise<AlertRuleType[]> {
    await this.gate.enter(context, "readAlerts", appId);
    return this.rules.list(appId);
  }

  @Query(() => AlertRuleType)
  async alertRule(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("id", () => Int) id: number,
  ): Promise<AlertRuleType> {
    await this.gate.enter(context, "readAlerts", appId);
    return this.rules.find(appId, id);
  }

  @Query(() => [AlertDeliveryType], { description: "The last 20 messages of an alert, newest first." })
  async alertDeliveries(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("id", () => Int) id: number,
  ): Promise<AlertDeliveryType[]> {
    await this.gate.enter(context, "readAlerts", appId);
    return this.rules.deliveries(appId, id);
  }

  @Mutation(() => AlertRuleType)
  async createAlertRule(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("rule", () => AlertRuleInput, { nullable: true }) rule: unknown,
  ): Promise<AlertRuleType> {
    const caller = await this.gate.enter(context, "manageAlerts", appId);
    return this.rules.create(caller, appId, rule);
  }

  @Mutation(() => AlertRuleType, { description: "Fields that are absent stay. Updating an alert resets its state." })
  async updateAlertRule(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("id", () => Int) id: number,
    @Arg("rule", () => AlertRuleInput, { nullable: true }) rule: unknown,
    @IfUpdatedAt() ifUpdatedAt?: StateGiven,
  ): Promise<AlertRuleType> {
    const caller = await this.gate.enter(context, "manageAlerts", appId);
    return this.rules.update(caller, { appId, id, precondition: preconditionOf(ifUpdatedAt) }, rule);
  }

  @Mutation(() => Boolean)
  async deleteAlertRule(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("id", () => Int) id: number,
    @IfUpdatedAt() ifUpdatedAt?: StateGiven,
  ): Promise<boolean> {
    const caller = await this.gate.enter(context, "removeAlerts", appId);
    await this.rules.remove(caller, { appId, id, precondition: preconditionOf(ifUpdatedAt) });
    return true;
  }

  @Mutation(() => AlertDeliveryType, { description: "Has people told that this is a test." })
  async testAlertRule(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("id", () => Int) id: number,
  ): Promise<AlertDeliveryType> {
    const caller = await this.gate.enter(context, "manageAlerts", appId);
    return this.rules.test(caller, appId, id);
  }
}
