/**
 * GraphQL resolver of the rejected requests to an action's HTTP triggers. Checks the caller's access and then calls one
 * operation.
 */
import { Arg, Ctx, Field, Int, ObjectType, Query, Resolver } from "type-graphql";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { RejectedRequestCount, RejectedRequestCounter } from "../../operations/http/rejected-request-counter.js";
import type { RequestContext } from "../context.js";
import { AppIdArgument } from "./arguments.js";
import { DateTime } from "./leaf-types.js";

@ObjectType("RefusedRequests", {
  description: "Requests to an action's HTTP triggers that were refused for one reason. They have no run.",
})
class RefusedRequestsType implements RejectedRequestCount {
  @Field(() => String, { description: "Status of the answer: UNAUTHORIZED or SIGNATURE_INVALID." }) status: string;
  @Field(() => String, { description: "Reason, for editors." }) reason: string;
  @Field(() => Int, { description: "Number of requests." }) count: number;
  @Field(() => DateTime, { description: "Time of the last request." }) lastAt: string;
  @Field(() => String, { nullable: true, description: "Network address of the last request; null if unknown." })
  lastAddress: string | null;
}

@Resolver()
export class HttpTriggerResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly rejectedRequestCounter: RejectedRequestCounter,
  ) {}

  @Query(() => [RefusedRequestsType], {
    description:
      "Counts the requests to an action's HTTP triggers that the service rejected, for each reason. The most recent reason comes first.",
  })
  async refusedRequests(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("actionId", () => Int, { description: "ID of the draft or the live version." }) actionId: number,
  ): Promise<RejectedRequestCount[]> {
    await this.accessChecks.requireAppAccess(context, "getAction", appId);
    return this.rejectedRequestCounter.list(appId, actionId);
  }
}
