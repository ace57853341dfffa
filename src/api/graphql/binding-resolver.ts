/**
 * GraphQL resolver of secret bindings: credentials that the service adds to an action's requests. Each method checks
 * the caller's access and then calls one operation.
 */
import { Arg, Ctx, Mutation, Query, Resolver } from "type-graphql";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type {
  BindingUse,
  SecretBindingTester,
  SecretBindingTestResult,
} from "../../operations/requests/secret-binding-tester.js";
import type { BindingsWithUpdateTime, SecretBindingStore } from "../../operations/requests/secret-bindings.js";
import type { RequestContext } from "../context.js";
import { AppIdArgument } from "./arguments.js";
import {
  SecretBindingInput,
  SecretBindingsType,
  SecretBindingTestInput,
  SecretBindingTrialType,
  SecretBindingUseType,
} from "./binding-types.js";
import { type ChangePrecondition, IfUpdatedAtArgument, toExpectedVersions } from "./if-updated-at.js";

@Resolver()
export class SecretBindingResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly service: SecretBindingStore,
    private readonly tester: SecretBindingTester,
  ) {}

  @Query(() => SecretBindingsType, { description: "Returns the app's secret bindings, without values." })
  async secretBindings(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
  ): Promise<BindingsWithUpdateTime> {
    await this.accessChecks.requireAppAccess(context, "readSecretBindings", appId);
    return this.service.list(appId);
  }

  @Query(() => [SecretBindingUseType], { description: "Lists the actions that use each secret binding." })
  async secretBindingUses(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<BindingUse[]> {
    await this.accessChecks.requireAppAccess(context, "readSecretBindings", appId);
    return this.tester.listUses(appId);
  }

  @Mutation(() => SecretBindingTrialType, {
    description: "Sends one request with the credential of a secret binding and returns the beginning of the response.",
  })
  async testSecretBinding(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("data", () => SecretBindingTestInput, { nullable: true, description: "Request to send; required." })
    data: unknown,
  ): Promise<SecretBindingTestResult> {
    const caller = await this.accessChecks.requireAppAccess(context, "testSecretBinding", appId);
    return this.tester.send(caller, appId, data, context.getClosedSignal?.() ?? new AbortController().signal);
  }

  @Mutation(() => SecretBindingsType, {
    description: "Replaces the app's secret bindings. A sealed key that is missing in the list stays sealed.",
  })
  async setSecretBindings(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("bindings", () => [SecretBindingInput], {
      nullable: "itemsAndList",
      description: "All bindings, at most 100.",
    })
    bindings: unknown,
    @IfUpdatedAtArgument() state: ChangePrecondition = null,
  ): Promise<BindingsWithUpdateTime> {
    const caller = await this.accessChecks.requireAppAccess(context, "writeSecretBindings", appId);
    // REST passes the whole body (an object). GraphQL passes only the list of bindings, which becomes an object here.
    const body = Array.isArray(bindings) || bindings === null || bindings === undefined ? { bindings } : bindings;
    return this.service.set(caller, { appId, precondition: toExpectedVersions(state) }, body);
  }
}
