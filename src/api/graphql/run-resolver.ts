/** Runs over GraphQL: on demand, cancelled, and what they print. Each method: the gate, then one call. */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, Field, Int, Mutation, ObjectType, Query, Resolver, Root, Subscription } from "type-graphql";
import type { Gate } from "../../operations/access/gate.js";
import { leavable, leftWith } from "../../operations/records/leavable.js";
import { type Guard, guarded } from "../../operations/records/live-source.js";
import type { PrintedLine, RunConsole } from "../../operations/runs/console.js";
import type { Runs } from "../../operations/runs/runs.js";
import type { Caller } from "../../rules/access.js";
import type { Reference, ReferenceKind } from "../../rules/reference.js";
import type { RequestContext } from "../context.js";
import { AppId } from "./arguments.js";
import { IdempotencyKey, keyOf } from "./idempotency.js";
import { DateTime } from "./leaf-types.js";
import { By, Ref } from "./reference-arguments.js";

@ObjectType("QueuedRun")
export class QueuedRunType {
  @Field(() => Int) runId: number;
}

@ObjectType("ExecutedRun")
class ExecutedRunType extends QueuedRunType {
  @Field(() => GraphQLJSON, { nullable: true, description: "Exactly what execute returned." }) result: unknown;
}

@ObjectType("ConsoleLine")
class ConsoleLineType {
  @Field(() => Int, { description: "Counts from 0 within the run." }) seq: number;
  @Field(() => String, { description: "The console's method, for example log or error." }) level: string;
  @Field(() => DateTime) at: string;
  @Field(() => String) text: string;
}

/** What the subscription needs of its context: decorators know no instance. */
export interface ConsoleContext extends RequestContext {
  gate: Gate;
  console: RunConsole;
}

/** @throws RUN_NOT_FOUND and the gate's refusals, before the first line */
async function followed({
  args,
  context,
}: {
  args: unknown;
  context: unknown;
}): Promise<AsyncGenerator<PrintedLine[]> & Guard> {
  const { appId, runId } = args as { appId: number; runId: number };
  const { gate, console, ...visitor } = context as ConsoleContext;
  await gate.enter(visitor, "readLogs", appId);
  const check = (caller: Caller) => gate.recheck(caller, "readLogs", appId);
  return guarded(console.follow(appId, runId), { appId, check });
}

const oneByOne = (batches: AsyncIterable<PrintedLine[]> & Guard): AsyncGenerator<PrintedLine> & Guard => {
  const lines = leavable<PrintedLine>(async function* (left) {
    for await (const batch of leftWith(batches, left)) yield* batch;
  });
  return guarded(lines, batches);
};

@Resolver()
export class RunResolver {
  constructor(
    private readonly gate: Gate,
    private readonly service: Runs,
    private readonly console: RunConsole,
  ) {}

  @Query(() => [ConsoleLineType], { description: "What the run has printed so far." })
  async runConsole(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("runId", () => Int) runId: number,
  ): Promise<PrintedLine[]> {
    await this.gate.enter(context, "readLogs", appId);
    return this.console.list(appId, runId);
  }

  @Subscription(() => ConsoleLineType, {
    description: "What the run prints, from its first line until it has ended.",
    subscribe: async (asked) => oneByOne(await followed(asked)),
  })
  runConsoleAdded(
    @Root() line: PrintedLine,
    @AppId() _appId: number,
    @Arg("runId", () => Int) _runId: number,
  ): PrintedLine {
    return line;
  }

  @Subscription(() => [ConsoleLineType], {
    description: "The same, up to 500 lines a message: for runs that print much.",
    subscribe: followed,
  })
  runConsoleLinesAdded(
    @Root() lines: PrintedLine[],
    @AppId() _appId: number,
    @Arg("runId", () => Int) _runId: number,
  ): PrintedLine[] {
    return lines;
  }

  @Mutation(() => QueuedRunType, { description: "Answers when the run is accepted." })
  async runAction(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Ref("nameOrId") ref: Reference,
    @Arg("payload", () => GraphQLJSON, { nullable: true }) payload: unknown,
    @IdempotencyKey() key?: string | null,
    @By() _by?: ReferenceKind | null,
  ): Promise<QueuedRunType> {
    const caller = await this.gate.enter(context, "runAction", appId);
    const { retryFailed = false } = context;
    const idempotencyKey = keyOf(context, key);
    return this.service.run(caller, { appId, ref, payload, idempotencyKey, retryFailed });
  }

  @Mutation(() => ExecutedRunType, { description: "Answers when the run has ended." })
  async runActionWithResult(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Ref("nameOrId") ref: Reference,
    @Arg("payload", () => GraphQLJSON, { nullable: true }) payload: unknown,
    @IdempotencyKey() key?: string | null,
    @By() _by?: ReferenceKind | null,
  ): Promise<ExecutedRunType> {
    const caller = await this.gate.enter(context, "runAction", appId);
    const { retryFailed = false, gone } = context;
    const idempotencyKey = keyOf(context, key);
    return this.service.runWithResult(caller, { appId, ref, payload, idempotencyKey, retryFailed, gone });
  }

  @Mutation(() => Boolean, { description: "Ends a queued or running run, by its starter or an editor." })
  async cancelRun(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("runId", () => Int) runId: number,
  ): Promise<boolean> {
    const caller = await this.gate.enter(context, "cancelRun", appId);
    await this.service.cancel(caller, appId, runId);
    return true;
  }
}
