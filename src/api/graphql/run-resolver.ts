/** Runs over GraphQL: on demand, cancelled. Each method: the gate, then one call. */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, Field, ID, Int, Mutation, ObjectType, Resolver } from "type-graphql";
import type { Gate } from "../../operations/gate.js";
import type { Runs } from "../../operations/runs.js";
import type { RequestContext } from "../context.js";

@ObjectType("QueuedRun")
class QueuedRunType {
  @Field(() => Int) runId: number;
}

@ObjectType("ExecutedRun")
class ExecutedRunType extends QueuedRunType {
  @Field(() => GraphQLJSON, { nullable: true, description: "Exactly what execute returned." }) result: unknown;
}

@Resolver()
export class RunResolver {
  constructor(
    private readonly gate: Gate,
    private readonly service: Runs,
  ) {}

  @Mutation(() => QueuedRunType, { description: "Answers when the run is accepted." })
  async runAction(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("nameOrId", () => ID) nameOrId: string,
    @Arg("payload", () => GraphQLJSON, { nullable: true }) payload: unknown,
  ): Promise<QueuedRunType> {
    const caller = await this.gate.enter(context, "runAction", appId);
    return this.service.run(caller, { appId, nameOrId, payload, idempotencyKey: context.idempotencyKey });
  }

  @Mutation(() => ExecutedRunType, { description: "Answers when the run has ended." })
  async runActionWithResult(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("nameOrId", () => ID) nameOrId: string,
    @Arg("payload", () => GraphQLJSON, { nullable: true }) payload: unknown,
  ): Promise<ExecutedRunType> {
    const caller = await this.gate.enter(context, "runAction", appId);
    return this.service.runWithResult(caller, { appId, nameOrId, payload, idempotencyKey: context.idempotencyKey });
  }

  @Mutation(() => Boolean, { description: "Ends a queued or running run, by its starter or an editor." })
  async cancelRun(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("runId", () => Int) runId: number,
  ): Promise<boolean> {
    const caller = await this.gate.enter(context, "cancelRun", appId);
    await this.service.cancel(caller, appId, runId);
    return true;
  }
}
