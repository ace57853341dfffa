/** Runs over GraphQL: start or cancel a run, read its console. Each method checks the caller's access and then calls one operation. */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, Field, Int, Mutation, ObjectType, Query, Resolver, Root, Subscription } from "type-graphql";
import type { DraftOrLive } from "../../data/action-types.js";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import { createAbortableGenerator, endIterableOnAbort } from "../../operations/records/abortable-generator.js";
import { guardSubscriptionSource, type SubscriptionGuard } from "../../operations/records/subscription-source.js";
import type { RunConsole, RunConsoleLine } from "../../operations/runs/console.js";
import type { Runs } from "../../operations/runs/runs.js";
import type { Caller } from "../../rules/access.js";
import type { IdOrName, ReferenceKind } from "../../rules/reference.js";
import type { RequestContext } from "../context.js";
import { AppIdArgument } from "./arguments.js";
import { IdempotencyKeyArgument, selectIdempotencyKey } from "./idempotency.js";
import { DateTime, DraftOrLiveEnum } from "./leaf-types.js";
import { ReferenceArgument, ReferenceKindArgument } from "./reference-arguments.js";

@ObjectType("QueuedRun", { description: "Queued run." })
export class QueuedRunType {
  @Field(() => Int, { description: "ID of the run." }) runId: number;
}

@ObjectType("ExecutedRun", { description: "Completed run and its result." })
class ExecutedRunType extends QueuedRunType {
  @Field(() => GraphQLJSON, { nullable: true, description: "Value that execute returned; null if it returned none." })
  result: unknown;
}

@ObjectType("ConsoleLine", { description: "Line that a run printed to its console." })
class ConsoleLineType {
  @Field(() => Int, { description: "Number of the line within the run, counted from 0." }) seq: number;
  @Field(() => String, { description: "Console method that printed the line, for example log or error." })
  level: string;
  @Field(() => DateTime, { description: "Time of the line." }) at: string;
  @Field(() => String, { description: "Text of the line." }) text: string;
}

const DraftOrLiveArgument = () =>
  Arg("copy", () => DraftOrLiveEnum, {
    nullable: true,
    description:
      "Version to run: `master` (the draft) or `production` (the live version). Only people and API tokens can choose, and they need the right to run the chosen version. By default, people run the draft, and API tokens the live version.",
  });

/**
 * Context of the subscription. It contains the access check and the console, because the decorator of a subscription
 * cannot access the resolver instance.
 */
export interface ConsoleSubscriptionContext extends RequestContext {
  accessChecks: AccessChecks;
  console: RunConsole;
}

/**
 * Checks the caller's access, and returns the batches of console lines that the run prints.
 * @throws RUN_NOT_FOUND and the errors of the access check, before the first line is sent
 */
async function followConsole({
  args,
  context,
}: {
  args: unknown;
  context: unknown;
}): Promise<AsyncGenerator<RunConsoleLine[]> & SubscriptionGuard> {
  const { appId, runId } = args as { appId: number; runId: number };
  const { accessChecks, console, ...requestContext } = context as ConsoleSubscriptionContext;
  await accessChecks.requireAppAccess(requestContext, "readLogs", appId);
  const check = (caller: Caller) => accessChecks.recheck(caller, "readLogs", appId);
  return guardSubscriptionSource(console.follow(appId, runId), { appId, check });
}

const splitIntoLines = (
  batches: AsyncIterable<RunConsoleLine[]> & SubscriptionGuard,
): AsyncGenerator<RunConsoleLine> & SubscriptionGuard => {
  const lines = createAbortableGenerator<RunConsoleLine>(async function* (abortSignal) {
    for await (const batch of endIterableOnAbort(batches, abortSignal)) yield* batch;
  });
  return guardSubscriptionSource(lines, batches);
};

@Resolver()
export class RunResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly service: Runs,
    private readonly console: RunConsole,
  ) {}

  @Query(() => [ConsoleLineType], { description: "Returns the lines that a run has printed so far." })
  async runConsole(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("runId", () => Int, { description: "ID of the run." }) runId: number,
  ): Promise<RunConsoleLine[]> {
    await this.accessChecks.requireAppAccess(context, "readLogs", appId);
    return this.console.list(appId, runId);
  }

  @Subscription(() => ConsoleLineType, {
    description: "Emits each line that a run prints, from the first line until the run ends.",
    subscribe: async (requested) => splitIntoLines(await followConsole(requested)),
  })
  runConsoleAdded(
    @Root() line: RunConsoleLine,
    @AppIdArgument() _appId: number,
    @Arg("runId", () => Int, { description: "ID of the run." }) _runId: number,
  ): RunConsoleLine {
    return line;
  }

  @Subscription(() => [ConsoleLineType], {
    description: "Emits the lines that a run prints in batches of up to 500, from the first line until the run ends.",
    subscribe: followConsole,
  })
  runConsoleLinesAdded(
    @Root() lines: RunConsoleLine[],
    @AppIdArgument() _appId: number,
    @Arg("runId", () => Int, { description: "ID of the run." }) _runId: number,
  ): RunConsoleLine[] {
    return lines;
  }

  /**
   * Checks that the caller may run the draft or live version (`copy`) of the app's actions, and returns the caller. If
   * `copy` is absent, the caller's credential selects the draft or the live version.
   * @throws the errors of `AccessChecks.requireAppAccess`
   */
  private async requireRunAccess(
    context: RequestContext,
    appId: number,
    copy: DraftOrLive | null | undefined,
  ): Promise<Caller> {
    if (!copy) return this.accessChecks.requireAppAccess(context, "runAction", appId);
    return {
      ...(await this.accessChecks.requireAppAccess(context, copy === "master" ? "runDraft" : "runLive", appId)),
      copy,
    };
  }

  @Mutation(() => QueuedRunType, { description: "Queues a run and returns before it starts." })
  async runAction(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @ReferenceArgument("nameOrId") ref: IdOrName,
    @Arg("payload", () => GraphQLJSON, { nullable: true, description: "Payload of the run, an object; {} by default." })
    payload: unknown,
    @IdempotencyKeyArgument() key?: string | null,
    @ReferenceKindArgument() _by?: ReferenceKind | null,
    @DraftOrLiveArgument() copy?: DraftOrLive | null,
  ): Promise<QueuedRunType> {
    const caller = await this.requireRunAccess(context, appId, copy);
    const { shouldRetryFailed: retryFailed = false } = context;
    const idempotencyKey = selectIdempotencyKey(context, key);
    return this.service.run(caller, { appId, ref, payload, idempotencyKey, retryFailed });
  }

  @Mutation(() => ExecutedRunType, { description: "Queues a run and returns its result when it ends." })
  async runActionWithResult(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @ReferenceArgument("nameOrId") ref: IdOrName,
    @Arg("payload", () => GraphQLJSON, { nullable: true, description: "Payload of the run, an object; {} by default." })
    payload: unknown,
    @IdempotencyKeyArgument() key?: string | null,
    @ReferenceKindArgument() _by?: ReferenceKind | null,
    @DraftOrLiveArgument() copy?: DraftOrLive | null,
  ): Promise<ExecutedRunType> {
    const caller = await this.requireRunAccess(context, appId, copy);
    const { shouldRetryFailed: retryFailed = false, getClosedSignal } = context;
    const idempotencyKey = selectIdempotencyKey(context, key);
    return this.service.runWithResult(caller, {
      appId,
      ref,
      payload,
      idempotencyKey,
      retryFailed,
      disconnectSignal: getClosedSignal,
    });
  }

  /**
   * Waits until a run has ended, for the tools of AI agents (mcp/run-tools.ts). GraphQL has no such field.
   * @param signals the wait ends when one of these signals aborts
   * @throws the errors of `Runs.waitForEnd`
   */
  async waitForRunEnd(
    context: RequestContext,
    appId: number,
    runId: number,
    ...signals: readonly AbortSignal[]
  ): Promise<void> {
    await this.accessChecks.requireAppAccess(context, "listRuns", appId);
    await this.service.waitForEnd(appId, runId, ...signals);
  }

  @Mutation(() => Boolean, {
    description:
      "Cancels a queued or running run. People with at least the role operator can cancel every run; tokens and pages only the runs that they started.",
  })
  async cancelRun(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("runId", () => Int, { description: "ID of the run." }) runId: number,
  ): Promise<boolean> {
    const caller = await this.accessChecks.requireAppAccess(context, "cancelRun", appId);
    await this.service.cancel(caller, appId, runId);
    return true;
  }
}
