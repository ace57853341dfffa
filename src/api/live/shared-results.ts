/**
 * Runs subscriptions. An event of a live source is executed and serialized once for all subscribers with the same
 * query, and each socket gets that text with its own id. Long texts are counted until the last socket has sent them. A
 * subscription ends with an error when its caller loses the right to it.
 */
import { createSourceEventStream, type ExecutionArgs, type ExecutionResult, execute } from "graphql";
import type { Logger } from "pino";
import { ActionError } from "../../errors.js";
import { createAbortableGenerator, endOnAbort } from "../../operations/records/leavable.js";
import { isLiveSource, type LiveSource, type SourceGuard } from "../../operations/records/live-source.js";
import type { Caller } from "../../rules/access.js";
import { writeJson } from "../../rules/json-text.js";
import { type Answers, sizeOf } from "../answers.js";
import { formatGraphqlError } from "../error-reply.js";

/** Maximum number of subscriptions of one app in one process. */
const SUBSCRIPTIONS_PER_APP = 20_000;

/** Number of characters from which a copy for each socket costs more than sending in parts. */
const LONG_CHARACTERS = 4_096;

/** Data in a subscription's context that this file uses. */
export interface ResultReceiver {
  /** The socket. Its subscriptions are checked together. */
  owner: object;
  /** Key that is equal for subscriptions with the same fields and arguments. */
  shape: string;
  /**
   * Receives the JSON text of one result. A long text arrives as shared bytes, which stay in memory until each receiver has called
   * `giveBack`.
   */
  deliver(result: string | Buffer, giveBack: (() => void) | null): void;
  /** Called if a result could not be written for lack of memory, so that this connection has missed an event for good. */
  miss(): void;
}

/** The text of one event for all subscribers with the same query. */
interface Text {
  /** Text, or null if there was no capacity for it. */
  written: Promise<string | Buffer | null>;
  /** Number of subscribers that have not sent the text yet. */
  claims: number;
  /** Frees the counted bytes of the text; null for a short text. */
  giveBack: (() => void) | null;
}

/** Ends a subscription with an error. */
type FailSubscription = (reason: ActionError) => void;

interface EndlessSource {
  iterable: AsyncGenerator<never, void, void>;
  /** graphql-ws turns the rejection into the protocol's `error` message. */
  fail: FailSubscription;
}

/** Returns an iterable without values, because the results bypass it. Calls `onEnd` when its reader leaves or it fails. */
function createEndlessSource(onEnd: () => void): EndlessSource {
  const endPromise = Promise.withResolvers<IteratorResult<never, void>>();
  // Prevents an unhandled rejection if the promise rejects before a reader awaits it.
  endPromise.promise.catch(() => undefined);
  const closeSource = async () => {
    onEnd();
    endPromise.resolve({ done: true, value: undefined });
    return { done: true, value: undefined } as const;
  };
  const iterable = {
    next: () => endPromise.promise,
    return: closeSource,
    throw: closeSource,
    [Symbol.asyncIterator]() {
      return this;
    },
    async [Symbol.asyncDispose]() {
      await closeSource();
    },
  };
  return {
    iterable,
    fail(reason) {
      onEnd();
      endPromise.reject(reason);
    },
  };
}

/** Returns an iterable that fails. graphql-ws turns its error into the protocol's `error` message, which ends the subscription. */
function refusedResults(error: Error): AsyncGenerator<never, void, void> {
  const { iterable } = createEndlessSource(() => undefined);
  return Object.assign(iterable, { next: () => Promise.reject(error) });
}

/** Executes the events of one subscription, without sharing results. */
const executeEach = (
  source: AsyncIterable<unknown>,
  args: ExecutionArgs,
): AsyncGenerator<ExecutionResult, void, void> =>
  createAbortableGenerator(async function* (readerLeft) {
    for await (const event of endOnAbort(source, readerLeft)) yield await execute({ ...args, rootValue: event });
  });

/**
 * Yields the values of `results` until it is made to fail. It then ends at once, even while `results` is waiting. Calls `onEnd` exactly
 * once.
 */
function createFailable<T>(
  results: AsyncGenerator<T, void, void>,
  onEnd: () => void,
): AsyncGenerator<T, void, void> & { fail: FailSubscription } {
  let failure: ActionError | null = null;
  let rejectNext: FailSubscription = () => {};
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
      // The subscribers receive the original failure, so errors while `results` closes are ignored.
      results.return().catch(() => undefined);
      rejectNext(reason);
    },
  };
}

/** Stores the texts of each event by shape. `answers` counts long texts. A long text is not written if there is no capacity. */
function createTexts(answers: Pick<Answers, "share">, log: Logger) {
  const texts = new WeakMap<object, Map<string, Text>>();

  async function resultOf(event: object, args: ExecutionArgs): Promise<object> {
    const { errors, ...result } = await execute({ ...args, rootValue: event });
    return errors ? { ...result, errors: errors.map((error) => formatGraphqlError(error, log)) } : result;
  }

  async function writeText(
    text: Text,
    appId: number,
    event: object,
    args: ExecutionArgs,
  ): Promise<string | Buffer | null> {
    const result = await resultOf(event, args);
    const length = sizeOf(result);
    try {
      if (length >= LONG_CHARACTERS) text.giveBack = answers.share(appId, length);
    } catch (error) {
      // OVERLOADED: the texts of other subscribers are being sent. A text that is too large by itself gets its own
      // error.
      if ((error as ActionError).status === "OVERLOADED") return null;
      return writeJson({ data: null, errors: [formatGraphqlError(error, log)] });
    }
    const written = writeJson(result);
    return text.giveBack ? Buffer.from(written) : written;
  }

  return {
    /** Returns the text for one more subscriber. */
    claim(appId: number, event: object, args: ExecutionArgs, shape: string): Text {
      const byShape = texts.get(event) ?? new Map<string, Text>();
      texts.set(event, byShape);
      let text = byShape.get(shape);
      if (!text) {
        text = { written: Promise.resolve(null), claims: 0, giveBack: null };
        text.written = writeText(text, appId, event, args);
        // Prevents an unhandled rejection, because the subscriber may await the text later.
        text.written.catch(() => undefined);
        byShape.set(shape, text);
      }
      text.claims += 1;
      return text;
    },

    /** Releases the text for a subscriber that has sent it, or never will. */
    releaseText(text: Text): void {
      text.claims -= 1;
      if (text.claims === 0) text.giveBack?.();
    },
  };
}

interface OpenSubscription {
  check: SourceGuard["check"];
  fail: FailSubscription;
}

/** Counts open subscriptions per app, and lists those of each socket. */
function createOpenSubscriptions() {
  const perApp = new Map<number, number>();
  const perOwner = new Map<object, Set<OpenSubscription>>();

  /** Counts a subscription. @returns a function that undoes this @throws ActionError OVERLOADED */
  function enterApp(appId: number): () => void {
    const count = perApp.get(appId) ?? 0;
    if (count >= SUBSCRIPTIONS_PER_APP) {
      throw new ActionError("OVERLOADED", "this app has too many open subscriptions", { retryAfter: 10 });
    }
    perApp.set(appId, count + 1);
    return () => {
      const subscriptionsLeft = perApp.get(appId)! - 1;
      if (subscriptionsLeft === 0) perApp.delete(appId);
      else perApp.set(appId, subscriptionsLeft);
    };
  }

  return {
    /** Counts a subscription, and checks its access again from now on. @returns a function that ends both @throws OVERLOADED */
    add(owner: object, { appId, check }: SourceGuard, fail: FailSubscription): () => void {
      const leaveApp = enterApp(appId);
      const subscription = { check, fail };
      const ownerResults = perOwner.get(owner) ?? new Set();
      perOwner.set(owner, ownerResults.add(subscription));
      return () => {
        if (!ownerResults.delete(subscription)) return;
        leaveApp();
        if (ownerResults.size === 0 && perOwner.get(owner) === ownerResults) perOwner.delete(owner);
      };
    },

    /** Ends the subscriptions of the socket that its caller has no right to any more; all of them if `caller` is null. */
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

type SubscriptionArgs = ExecutionArgs & { contextValue: ResultReceiver };

export function createSharedResults(answers: Pick<Answers, "share">, log: Logger) {
  const texts = createTexts(answers, log);
  const { add, recheck, count } = createOpenSubscriptions();

  function followSource(source: LiveSource<object> & SourceGuard, args: SubscriptionArgs) {
    const { owner, shape, deliver, miss } = args.contextValue;
    const { appId } = source;
    let isOpen = true;
    let stopFollowing = () => {};
    let sendOrder = Promise.resolve();

    async function handText(text: Text): Promise<void> {
      const written = await text.written.catch((error: unknown) => {
        texts.releaseText(text);
        throw error;
      });
      if (isOpen && written !== null) return deliver(written, text.giveBack && (() => texts.releaseText(text)));
      texts.releaseText(text);
      if (isOpen) miss();
    }

    const { iterable, fail } = createEndlessSource(() => {
      if (!isOpen) return;
      isOpen = false;
      stopFollowing();
      leaveApp();
    });
    const leaveApp = add(owner, source, fail);
    stopFollowing = source.listen((event) => {
      const text = texts.claim(appId, event, args, shape);
      sendOrder = sendOrder
        .then(() => handText(text))
        .catch((error: unknown) => log.warn({ err: error }, "an event could not be sent to a subscription"));
    }, fail);
    // The subscription may have ended while its source was being opened.
    if (!isOpen) stopFollowing();
    return iterable;
  }

  function iterateSource(source: AsyncIterable<unknown> & SourceGuard, args: SubscriptionArgs) {
    const results = createFailable(executeEach(source, args), () => leaveApp());
    const leaveApp = add(args.contextValue.owner, source, results.fail);
    return results;
  }

  /** Replaces GraphQL's own `subscribe`. If the returned iterable fails, its error states the cause. */
  async function subscribe(
    args: ExecutionArgs,
  ): Promise<AsyncGenerator<ExecutionResult, void, void> | ExecutionResult> {
    const source = await createSourceEventStream(args);
    try {
      if (isLiveSource(source))
        return followSource(source as LiveSource<object> & SourceGuard, args as SubscriptionArgs);
      if (Symbol.asyncIterator in source)
        return iterateSource(source as AsyncIterable<unknown> & SourceGuard, args as SubscriptionArgs);
    } catch (error) {
      return refusedResults(error as Error);
    }
    const [error] = source.errors ?? [];
    return refusedResults(error ?? new Error("the subscription has no event source"));
  }

  /** `count` is the number of open subscriptions. For `recheck` see createOpenSubscriptions. */
  return { subscribe, recheck, count };
}
