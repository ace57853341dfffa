/**
 * Runs GraphQL subscriptions. The result of an event is computed and written as JSON once for all subscribers with the same query. A
 * subscription ends with an error when its caller loses access.
 */
import { createSourceEventStream, type ExecutionArgs, type ExecutionResult, execute } from "graphql";
import type { Logger } from "pino";
import { ActionError } from "../../errors.js";
import { createAbortableGenerator, endIterableOnAbort } from "../../operations/records/abortable-generator.js";
import {
  isSubscriptionSource,
  type SubscriptionGuard,
  type SubscriptionSource,
} from "../../operations/records/subscription-source.js";
import type { Caller } from "../../rules/access.js";
import { serializeJson } from "../../rules/json-text.js";
import { formatGraphqlError } from "../error-reply.js";
import { estimateResponseBytes, type ResponseMemoryLimiter } from "../response-memory.js";

/** Maximum number of open subscriptions of one app in one process. */
const SUBSCRIPTIONS_PER_APP_MAX = 20_000;

/** Minimum length in characters of a text that all subscribers share as one buffer. Copying a shorter text is cheaper. */
const LONG_TEXT_MIN_CHARACTERS = 4_096;

export interface SubscriptionResultReceiver {
  /**
   * Object that identifies the subscription's websocket. The service checks the access of all subscriptions of a
   * websocket together.
   */
  socketKey: object;
  /** Key that two subscriptions share if they select the same fields with the same arguments. */
  queryKey: string;
  /**
   * Receives the JSON text of one result. A long text is a buffer that all receivers share; its memory is freed when each receiver has
   * called `onSent`.
   */
  receiveResult(result: string | Buffer, onSent: (() => void) | null): void;
  /** Called if there was no memory to write a result, so that the subscriber has lost an event. */
  onMissedEvent(): void;
}

/** JSON text of one event's result, which all subscribers with the same query share. */
interface SharedText {
  /** Resolves with the text; with null if there was no memory for it. */
  textPromise: Promise<string | Buffer | null>;
  unsentCount: number;
  /** Frees the memory of the text; null for a short text, whose memory is not counted. */
  freeMemory: (() => void) | null;
}

type FailSubscription = (reason: ActionError) => void;

interface EndlessSource {
  iterable: AsyncGenerator<never, void, void>;
  /** Ends the iterable with an error, which graphql-ws sends to the client as the protocol's `error` message. */
  failSubscription: FailSubscription;
}

/**
 * Returns an iterable that only keeps the subscription open, because other code sends the results. Calls `onEnd` when the iterable ends.
 */
function createEndlessSource(onEnd: () => void): EndlessSource {
  const endPromise = Promise.withResolvers<IteratorResult<never, void>>();
  // Prevents an unhandled rejection if the promise rejects before the consumer awaits it.
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
    failSubscription(reason) {
      onEnd();
      endPromise.reject(reason);
    },
  };
}

/** Returns an iterable that fails at once. graphql-ws sends the error to the client, which ends the subscription. */
function createFailedResults(error: Error): AsyncGenerator<never, void, void> {
  const { iterable } = createEndlessSource(() => undefined);
  return Object.assign(iterable, { next: () => Promise.reject(error) });
}

/** Computes the results of one subscription without sharing them with other subscribers. */
const executeEachEvent = (
  source: AsyncIterable<unknown>,
  args: ExecutionArgs,
): AsyncGenerator<ExecutionResult, void, void> =>
  createAbortableGenerator(async function* (abortSignal) {
    for await (const event of endIterableOnAbort(source, abortSignal))
      yield await execute({ ...args, rootValue: event });
  });

/** Yields the values of `results`. `fail` ends the iterable at once, even while a value is awaited. `onEnd` may be called several times. */
function makeFailable<T>(
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
      // The consumer gets `reason`, so an error while `results` closes is ignored.
      results.return().catch(() => undefined);
      rejectNext(reason);
    },
  };
}

/** JSON texts of the results of events. Subscribers whose receivers have the same `queryKey` share one text of an event. */
class SharedTexts {
  private readonly texts = new WeakMap<object, Map<string, SharedText>>();

  constructor(
    private readonly responseMemory: Pick<ResponseMemoryLimiter, "countSharedText">,
    private readonly log: Logger,
  ) {}

  private async computeResult(event: object, args: ExecutionArgs): Promise<object> {
    const { errors, ...result } = await execute({ ...args, rootValue: event });
    return errors ? { ...result, errors: errors.map((error) => formatGraphqlError(error, this.log)) } : result;
  }

  private async writeText(
    text: SharedText,
    appId: number,
    event: object,
    args: ExecutionArgs,
  ): Promise<string | Buffer | null> {
    const result = await this.computeResult(event, args);
    const length = estimateResponseBytes(result);
    try {
      if (length >= LONG_TEXT_MIN_CHARACTERS) text.freeMemory = this.responseMemory.countSharedText(appId, length);
    } catch (error) {
      // OVERLOADED means that other texts use the memory now. A text that alone exceeds the limit fails with another status.
      if ((error as ActionError).status === "OVERLOADED") return null;
      return serializeJson({ data: null, errors: [formatGraphqlError(error, this.log)] });
    }
    const resultJson = serializeJson(result);
    return text.freeMemory ? Buffer.from(resultJson) : resultJson;
  }

  /** Returns the text of the event for one more subscriber. Writes the text if this subscriber is the first. */
  claimText(appId: number, event: object, args: ExecutionArgs, queryKey: string): SharedText {
    const textsByQueryKey = this.texts.get(event) ?? new Map<string, SharedText>();
    this.texts.set(event, textsByQueryKey);
    let text = textsByQueryKey.get(queryKey);
    if (!text) {
      text = { textPromise: Promise.resolve(null), unsentCount: 0, freeMemory: null };
      text.textPromise = this.writeText(text, appId, event, args);
      // Prevents an unhandled rejection, because the subscriber may await the text later.
      text.textPromise.catch(() => undefined);
      textsByQueryKey.set(queryKey, text);
    }
    text.unsentCount += 1;
    return text;
  }

  /** Releases the text for one subscriber, which has sent the text or will never send it. */
  releaseText(text: SharedText): void {
    text.unsentCount -= 1;
    if (text.unsentCount === 0) text.freeMemory?.();
  }
}

interface OpenSubscription {
  check: SubscriptionGuard["check"];
  fail: FailSubscription;
}

/** Counts the open subscriptions of each app, and lists those of each websocket. */
class OpenSubscriptions {
  private readonly countByApp = new Map<number, number>();
  private readonly subscriptionsBySocket = new Map<object, Set<OpenSubscription>>();

  /**
   * Counts a subscription of the app.
   * @returns a function that removes it from the count
   * @throws ActionError OVERLOADED if the app has too many subscriptions
   */
  private countForApp(appId: number): () => void {
    const count = this.countByApp.get(appId) ?? 0;
    if (count >= SUBSCRIPTIONS_PER_APP_MAX) {
      throw new ActionError(
        "OVERLOADED",
        `this app can have at most ${SUBSCRIPTIONS_PER_APP_MAX} open GraphQL subscriptions in one process; close some of them first`,
        {
          retryAfter: 10,
        },
      );
    }
    this.countByApp.set(appId, count + 1);
    return () => {
      const subscriptionsLeft = this.countByApp.get(appId)! - 1;
      if (subscriptionsLeft === 0) this.countByApp.delete(appId);
      else this.countByApp.set(appId, subscriptionsLeft);
    };
  }

  /**
   * Counts a subscription, and makes `recheck` check the access of its caller.
   * @returns a function that removes the subscription
   * @throws OVERLOADED if the app has too many subscriptions
   */
  add(socketKey: object, { appId, check }: SubscriptionGuard, fail: FailSubscription): () => void {
    const decreaseAppCount = this.countForApp(appId);
    const subscription = { check, fail };
    const socketSubscriptions = this.subscriptionsBySocket.get(socketKey) ?? new Set();
    this.subscriptionsBySocket.set(socketKey, socketSubscriptions.add(subscription));
    return () => {
      if (!socketSubscriptions.delete(subscription)) return;
      decreaseAppCount();
      if (socketSubscriptions.size === 0 && this.subscriptionsBySocket.get(socketKey) === socketSubscriptions)
        this.subscriptionsBySocket.delete(socketKey);
    };
  }

  /** Ends those subscriptions of the websocket to which `caller` has lost access; all of them if `caller` is null. */
  recheck(socketKey: object, caller: Caller | null): void {
    for (const { check, fail } of [...(this.subscriptionsBySocket.get(socketKey) ?? [])]) {
      try {
        if (!caller) throw new ActionError("UNAUTHORIZED");
        check(caller);
      } catch (error) {
        fail(error as ActionError);
      }
    }
  }

  count() {
    return [...this.countByApp.values()].reduce((sum, count) => sum + count, 0);
  }
}

type SubscriptionArgs = ExecutionArgs & { contextValue: SubscriptionResultReceiver };

export class SharedSubscriptionResults {
  private readonly texts = new SharedTexts(this.responseMemory, this.log);
  private readonly subscriptions = new OpenSubscriptions();

  constructor(
    private readonly responseMemory: Pick<ResponseMemoryLimiter, "countSharedText">,
    private readonly log: Logger,
  ) {}

  private followSource(source: SubscriptionSource<object> & SubscriptionGuard, args: SubscriptionArgs) {
    const { socketKey, queryKey, receiveResult, onMissedEvent } = args.contextValue;
    const { appId } = source;
    let isOpen = true;
    let stopFollowing = () => {};
    let previousSend = Promise.resolve();

    const deliverText = async (text: SharedText): Promise<void> => {
      const resultJson = await text.textPromise.catch((error: unknown) => {
        this.texts.releaseText(text);
        throw error;
      });
      if (isOpen && resultJson !== null)
        return receiveResult(resultJson, text.freeMemory && (() => this.texts.releaseText(text)));
      this.texts.releaseText(text);
      if (isOpen) onMissedEvent();
    };

    const { iterable, failSubscription } = createEndlessSource(() => {
      if (!isOpen) return;
      isOpen = false;
      stopFollowing();
      removeSubscription();
    });
    const removeSubscription = this.subscriptions.add(socketKey, source, failSubscription);
    stopFollowing = source.listen((event) => {
      const text = this.texts.claimText(appId, event, args, queryKey);
      previousSend = previousSend
        .then(() => deliverText(text))
        .catch((error: unknown) => this.log.warn({ err: error }, "an event could not be sent to a subscription"));
    }, failSubscription);
    // The subscription may have ended while its event source was being opened.
    if (!isOpen) stopFollowing();
    return iterable;
  }

  private iterateSource(source: AsyncIterable<unknown> & SubscriptionGuard, args: SubscriptionArgs) {
    const results = makeFailable(executeEachEvent(source, args), () => removeSubscription());
    const removeSubscription = this.subscriptions.add(args.contextValue.socketKey, source, results.fail);
    return results;
  }

  /**
   * Replaces the function `subscribe` of graphql-js. If the subscription cannot start, the returned iterable fails with
   * the cause.
   */
  async subscribe(args: ExecutionArgs): Promise<AsyncGenerator<ExecutionResult, void, void> | ExecutionResult> {
    const source = await createSourceEventStream(args);
    try {
      if (isSubscriptionSource(source))
        return this.followSource(source as SubscriptionSource<object> & SubscriptionGuard, args as SubscriptionArgs);
      if (Symbol.asyncIterator in source)
        return this.iterateSource(source as AsyncIterable<unknown> & SubscriptionGuard, args as SubscriptionArgs);
    } catch (error) {
      return createFailedResults(error as Error);
    }
    const [error] = source.errors ?? [];
    return createFailedResults(
      error ?? new Error("the resolver of the GraphQL subscription returned neither a stream of events nor an error"),
    );
  }

  /** Ends those subscriptions of the websocket `owner` to which `caller` has lost access; all of them if `caller` is null. */
  recheck(owner: object, caller: Caller | null): void {
    this.subscriptions.recheck(owner, caller);
  }

  /** Returns the number of open subscriptions. */
  count(): number {
    return this.subscriptions.count();
  }
}
