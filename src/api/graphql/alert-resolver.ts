/**
 * GraphQL resolver of alerts: rules that send a message, for example when runs fail. Each method checks the caller's
 * access and then calls one operation.
 */
import { Arg, Ctx, Int, Mutation, Query, Resolver } from "type-graphql";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { AlertRules } from "../../operations/alerts/alert-rules.js";
import type { RequestContext } from "../context.js";
import { AlertDeliveryType, AlertRuleInput, AlertRuleType } from "./alert-types.js";
import { AppIdArgument } from "./arguments.js";
import { type ChangePrecondition, IfUpdatedAtArgument, toExpectedVersions } from "./if-updated-at.js";

@Resolver(() => AlertRuleType)
export class AlertResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly rules: AlertRules,
  ) {}

  @Query(() => [AlertRuleType], { description: "Lists the app's alerts, sorted by name." })
  async alertRules(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<AlertRuleType[]> {
    await this.accessChecks.requireAppAccess(context, "readAlerts", appId);
    return this.rules.list(appId);
  }

  @Query(() => AlertRuleType, { description: "Returns one alert." })
  async alertRule(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the alert." }) id: number,
  ): Promise<AlertRuleType> {
    await this.accessChecks.requireAppAccess(context, "readAlerts", appId);
    return this.rules.find(appId, id);
  }

  @Query(() => [AlertDeliveryType], { description: "Lists the last 20 messages of an alert, newest first." })
  async alertDeliveries(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the alert." }) id: number,
  ): Promise<AlertDeliveryType[]> {
    await this.accessChecks.requireAppAccess(context, "readAlerts", appId);
    return this.rules.listDeliveries(appId, id);
  }

  @Mutation(() => AlertRuleType, { description: "Creates an alert." })
  async createAlertRule(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("rule", () => AlertRuleInput, { nullable: true, description: "Properties of the new alert." }) rule: unknown,
  ): Promise<AlertRuleType> {
    const caller = await this.accessChecks.requireAppAccess(context, "manageAlerts", appId);
    return this.rules.create(caller, appId, rule);
  }

  @Mutation(() => AlertRuleType, {
    description: "Updates an alert and resets its state; omitted properties keep their values.",
  })
  async updateAlertRule(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the alert." }) id: number,
    @Arg("rule", () => AlertRuleInput, { nullable: true, description: "Properties to change." }) rule: unknown,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<AlertRuleType> {
    const caller = await this.accessChecks.requireAppAccess(context, "manageAlerts", appId);
    return this.rules.update(caller, { appId, id, precondition: toExpectedVersions(ifUpdatedAt) }, rule);
  }

  @Mutation(() => Boolean, { description: "Deletes an alert." })
  async deleteAlertRule(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the alert." }) id: number,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<boolean> {
    const caller = await this.accessChecks.requireAppAccess(context, "removeAlerts", appId);
    await this.rules.remove(caller, { appId, id, precondition: toExpectedVersions(ifUpdatedAt) });
    return true;
  }

  @Mutation(() => AlertDeliveryType, { description: "Sends a test message through the alert's channel." })
  async testAlertRule(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the alert." }) id: number,
  ): Promise<AlertDeliveryType> {
    const caller = await this.accessChecks.requireAppAccess(context, "manageAlerts", appId);
    return this.rules.test(caller, appId, id);
  }
}
