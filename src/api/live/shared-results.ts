/**
 * Runs subscriptions. An event of a live source is executed and serialized once for all subscribers that asked for the same of it, and each
 * socket gets that text with its own id. Long texts are counted until the last socket has sent them. A subscription ends with an error when
 * its caller loses the right to it.
 */
import { createSourceEventStream, type ExecutionArgs, type ExecutionResult, execute } from "graphql";
import type { Logger } from "pino";
import { ActionError } from "../../errors.js";
import { leavable, leftWith } from "../../operations/records/leavable.js";
import { type Guard, isLiveSource, type LiveSource } from "../../operations/records/live-source.js";
import type { Caller } from "../../rules/access.js";
import { writeJson } from "../../rules/json-text.js";
import { type Answers, sizeOf } from "../answers.js";
import { formatGraphqlError } from "../error-reply.js";

/** Subscriptions of one app in one process. */
const SUBSCRIPTIONS_PER_APP = 20_000;

/** From here on a copy for each socket costs more than what sending in parts does. */
const LONG_CHARACTERS = 4_096;

/** What a subscription's context holds for this file. */
export interface Receiver {
  /** The socket: its subscriptions are checked together. */
  owner: object;
  /** Equal for all who ask for the same fields with the same arguments. */
  shape: string;
  /** Takes the JSON text of one result: a long one as bytes, which all who take it share, until each has called `left`. */
  deliver(result: string | Buffer, left: (() => void) | null): void;
  /** There was no room to write the result out: what is missed cannot be made up for on this connection. */
  miss(): void;
}

/** What one event says to all who asked for the same of it. */
interface Text {
  /** null where there was no room for it. */
  written: Promise<string | Buffer | null>;
  /** Those who have still to send it. */
  claims: number;
  /** Ends its being counted; null for a short one. */
  giveBack: (() => void) | null;
}

/** Ends a subscription with an error. */
type Fail = (reason: ActionError) => void;

interface Endless {
  iterable: AsyncGenerator<never, void, void>;
  /** graphql-ws turns the rejection into the protocol's `error` message. */
  fail: Fail;
}

/** An iterable without values: the results take the short way. `onEnd` is called when its reader leaves, or it fails. */
function endless(onEnd: () => void): Endless {
  const ended = Promise.withResolvers<IteratorResult<never, void>>();
  // It may fail before any reader awaits it.
  ended.promise.catch(() => undefined);
  const end = async () => {
    onEnd();
    ended.resolve({ done: true, value: undefined });
    return { done: true, value: undefined } as const;
  };
  const iterable = {
    next: () => ended.promise,
    return: end,
    throw: end,
    [Symbol.asyncIterator]() {
      return this;
    },
    async [Symbol.asyncDispose]() {
      await end();
    },
  };
  return {
    iterable,
    fail(reason) {
      onEnd();
      ended.reject(reason);
    },
  };
}

/** graphql-ws turns what an iterable throws into the protocol's `error` message, which ends the subscription. */
function refused(error: Error): AsyncGenerator<never, void, void> {
  const { iterable } = endless(() => undefined);
  return Object.assign(iterable, { next: () => Promise.reject(error) });
}

/** Events of one subscription only. */
const executed = (source: AsyncIterable<unknown>, args: ExecutionArgs): AsyncGenerator<ExecutionResult, void, void> =>
  leavable(async function* (left) {
    for await (const event of leftWith(source, left)) yield await execute({ ...args, rootValue: event });
  });

/** The same values, until it fails: then at once, whatever `results` waits for. `onEnd` is called once, however it ends. */
function failable<T>(
  results: AsyncGenerator<T, void, void>,
  onEnd: () => void,
): AsyncGenerator<T, void, void> & { fail: Fail } {
  let failure: ActionError | null = null;
  let rejectNext: Fail = () => {};
  return {
    ...results,
    next() {
      if (failure) return Promise.reject(failure);
      return new Promise((resolve, reject) => {
        rejectNext = reject;
        results.next().then(
          (result) => {
            if (result.done) onEnd();
            resolve(result);
          },
          (error: unknown) => {
            onEnd();
            reject(error);
          },
        );
      });
    },
    return() {
      onEnd();
      return results.return();
    },
    fail(reason) {
      failure = reason;
      onEnd();
      // The subscribers receive the failure above.
      results.return().catch(() => undefined);
      rejectNext(reason);
    },
  };
}

/** Each event's texts by shape. They are counted by `answers` where they are long, and never written where that has no room. */
function createTexts(answers: Pick<Answers, "share">, log: Logger) {
  const texts = new WeakMap<object, Map<string, Text>>();

  async function resultOf(event: object, args: ExecutionArgs): Promise<object> {
    const { errors, ...result } = await execute({ ...args, rootValue: event });
    return errors ? { ...result, errors: errors.map((error) => formatGraphqlError(error, log)) } : result;
  }

  async function write(text: Text, appId: number, event: object, args: ExecutionArgs): Promise<string | Buffer | null> {
    const result = await resultOf(event, args);
    const length = sizeOf(result);
    try {
      if (length >= LONG_CHARACTERS) text.giveBack = answers.share(appId, length);
    } catch (error) {
      // The texts of others are on their way; one that is too large in itself is said to be.
      if ((error as ActionError).status === "OVERLOADED") return null;
      return writeJson({ data: null, errors: [formatGraphqlError(error, log)] });
    }
    const written = writeJson(result);
    return text.giveBack ? Buffer.from(written) : written;
  }

  return {
    /** The text for one more who has asked for it. */
    claim(appId: number, event: object, args: ExecutionArgs, shape: string): Text {
      const byShape = texts.get(event) ?? new Map<string, Text>();
      texts.set(event, byShape);
      let text = byShape.get(shape);
      if (!text) {
        text = { written: Promise.resolve(null), claims: 0, giveBack: null };
        text.written = write(text, appId, event, args);
        // The claimer may await it later.
        text.written.catch(() => undefined);
        byShape.set(shape, text);
      }
      text.claims += 1;
      return text;
    },

    /** One of those who claimed it has sent it, or never will. */
    leave(text: Text): void {
      text.claims -= 1;
      if (text.claims === 0) text.giveBack?.();
    },
  };
}

interface OpenSubscription {
  check: Guard["check"];
  fail: Fail;
}

/** The open subscriptions: how many each app has, and which each socket has. */
function createOpenSubscriptions() {
  const perApp = new Map<number, number>();
  const perOwner = new Map<object, Set<OpenSubscription>>();

  /** @returns what counts it out again @throws OVERLOADED */
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

  return {
    /** Counts a subscription and checks it from now on. @returns what ends both @throws OVERLOADED */
    add(owner: object, { appId, check }: Guard, fail: Fail): () => void {
      const leave = enter(appId);
      const subscription = { check, fail };
      const ofOwner = perOwner.get(owner) ?? new Set();
      perOwner.set(owner, ofOwner.add(subscription));
      return () => {
        if (!ofOwner.delete(subscription)) return;
        leave();
        if (ofOwner.size === 0 && perOwner.get(owner) === ofOwner) perOwner.delete(owner);
      };
    },

    /** Ends those of the socket that its caller has no right to any more; `caller` null: all of them. */
    recheck(owner: object, caller: Caller | null): void {
      for (const { check, fail } of [...(perOwner.get(owner) ?? [])]) {
        try {
          if (!caller) throw new ActionError("UNAUTHORIZED");
          check(caller);
        } catch (error) {
          fail(error as ActionError);
        }
      }
    },

    count: () => [...perApp.values()].reduce((sum, ofApp) => sum + ofApp, 0),
  };
}

type SubscriptionArgs = ExecutionArgs & { contextValue: Receiver };

export function createSharedResults(answers: Pick<Answers, "share">, log: Logger) {
  const texts = createTexts(answers, log);
  const { add, recheck, count } = createOpenSubscriptions();

  function follow(source: LiveSource<object> & Guard, args: SubscriptionArgs) {
    const { owner, shape, deliver, miss } = args.contextValue;
    const { appId } = source;
    let open = true;
    let stop = () => {};
    let order = Promise.resolve();

    async function hand(text: Text): Promise<void> {
      const written = await text.written.catch((error: unknown) => {
        texts.leave(text);
        throw error;
      });
      if (open && written !== null) return deliver(written, text.giveBack && (() => texts.leave(text)));
      texts.leave(text);
      if (open) miss();
    }

    const { iterable, fail } = endless(() => {
      if (!open) return;
      open = false;
      stop();
      leave();
    });
    const leave = add(owner, source, fail);
    stop = source.listen((event) => {
      const text = texts.claim(appId, event, args, shape);
      order = order
        .then(() => hand(text))
        .catch((error: unknown) => log.warn({ err: error }, "an event could not be delivered"));
    }, fail);
    // It may have ended while it was listened to for the first time.
    if (!open) stop();
    return iterable;
  }

  function iterate(source: AsyncIterable<unknown> & Guard, args: SubscriptionArgs) {
    const results = failable(executed(source, args), () => leave());
    const leave = add(args.contextValue.owner, source, results.fail);
    return results;
  }

  /** In the place of GraphQL's own `subscribe`. Its refusals are thrown by the iterable, each with its cause. */
  async function subscribe(
    args: ExecutionArgs,
  ): Promise<AsyncGenerator<ExecutionResult, void, void> | ExecutionResult> {
    const source = await createSourceEventStream(args);
    try {
      if (isLiveSource(source)) return follow(source as LiveSource<object> & Guard, args as SubscriptionArgs);
      if (Symbol.asyncIterator in source)
        return iterate(source as AsyncIterable<unknown> & Guard, args as SubscriptionArgs);
    } catch (error) {
      return refused(error as Error);
    }
    const [error] = source.errors ?? [];
    return refused(error ?? new Error("a subscription without a source"));
  }

  /** `count`: the number of open subscriptions. `recheck`: see createOpenSubscriptions. */
  return { subscribe, recheck, count };
}
