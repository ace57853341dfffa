/**
 * Subscriptions whose events go to many: an event is executed and written out once for all who asked for the same of it, and
 * each socket gets that text with its own id. Knows no transport and no event.
 */
import { createSourceEventStream, type ExecutionArgs, type ExecutionResult, execute } from "graphql";
import type { Logger } from "pino";
import { ActionError } from "../../errors.js";
import { isLiveSource, type LiveSource } from "../../operations/logs/live-source.js";
import { writeJson } from "../../rules/json-text.js";
import { formatGraphqlError } from "../error-reply.js";

/** Subscriptions of one app in one process. */
export const SUBSCRIPTIONS_PER_APP = 20_000;

/** From here on a copy for each socket costs more than what sending in parts does. */
const LONG_CHARACTERS = 4_096;

/** What a subscription's context holds for this file. */
export interface Receiver {
  /** Equal for all who ask for the same fields with the same arguments. */
  shape: string;
  /** Takes the JSON text of one result: a long one as bytes, which all who take it share. */
  deliver(result: string | Buffer): void;
}

/** An iterable that gives nothing: the results take the short way. It ends when it is told to. */
function endless(onEnd: () => void): AsyncGenerator<never, void, void> {
  const ended = Promise.withResolvers<IteratorResult<never, void>>();
  const end = async () => {
    onEnd();
    ended.resolve({ done: true, value: undefined });
    return ended.promise;
  };
  return {
    next: () => ended.promise,
    return: end,
    throw: end,
    [Symbol.asyncIterator]() {
      return this;
    },
    [Symbol.asyncDispose]: async () => void (await end()),
  };
}

/** graphql-ws turns what an iterable throws into the protocol's `error` message, which ends the subscription. */
function refused(error: Error): AsyncGenerator<never, void, void> {
  const iterable = endless(() => undefined);
  return Object.assign(iterable, { next: () => Promise.reject(error) });
}

/** Events of one subscription alone. */
async function* executed(
  source: AsyncIterable<unknown>,
  args: ExecutionArgs,
): AsyncGenerator<ExecutionResult, void, void> {
  for await (const event of source) yield await execute({ ...args, rootValue: event });
}

export function createSharedResults(log: Logger) {
  const texts = new WeakMap<object, Map<string, Promise<string | Buffer>>>();
  const perApp = new Map<number, number>();

  async function write(event: object, args: ExecutionArgs): Promise<string | Buffer> {
    const { errors, ...result } = await execute({ ...args, rootValue: event });
    const text = writeJson(
      errors ? { ...result, errors: errors.map((error) => formatGraphqlError(error, log)) } : result,
    );
    return text.length < LONG_CHARACTERS ? text : Buffer.from(text);
  }

  function textOf(event: object, args: ExecutionArgs, shape: string): Promise<string | Buffer> {
    const byShape = texts.get(event) ?? new Map<string, Promise<string | Buffer>>();
    texts.set(event, byShape);
    const text = byShape.get(shape) ?? write(event, args);
    byShape.set(shape, text);
    return text;
  }

  function enter(appId: number): () => void {
    const count = perApp.get(appId) ?? 0;
    if (count >= SUBSCRIPTIONS_PER_APP) {
      throw new ActionError("OVERLOADED", "this app has too many subscriptions open", { retryAfter: 10 });
    }
    perApp.set(appId, count + 1);
    return () => {
      const left = perApp.get(appId)! - 1;
      if (left === 0) perApp.delete(appId);
      else perApp.set(appId, left);
    };
  }

  function follow(source: LiveSource<object>, args: ExecutionArgs & { contextValue: Receiver }) {
    const { shape, deliver } = args.contextValue;
    const leave = enter(source.appId);
    let open = true;
    let order = Promise.resolve();
    const stop = source.listen((event) => {
      const text = textOf(event, args, shape);
      order = order
        .then(async () => {
          const written = await text;
          if (open) deliver(written);
        })
        .catch((error: unknown) => log.warn({ err: error }, "an event could not be delivered"));
    });
    return endless(() => {
      if (open) {
        stop();
        leave();
      }
      open = false;
    });
  }

  /** In the place of GraphQL's own `subscribe`. Its refusals are thrown by the iterable, each with its cause. */
  return async function subscribe(
    args: ExecutionArgs,
  ): Promise<AsyncGenerator<ExecutionResult, void, void> | ExecutionResult> {
    const source = await createSourceEventStream(args);
    try {
      if (isLiveSource(source)) return follow(source, args as ExecutionArgs & { contextValue: Receiver });
    } catch (error) {
      return refused(error as Error);
    }
    if (Symbol.asyncIterator in source) return executed(source, args);
    const [error] = source.errors ?? [];
    return refused(error ?? new Error("a subscription without a source"));
  };
}
