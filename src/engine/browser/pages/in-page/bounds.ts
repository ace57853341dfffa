/**
 * Limits functions of a document or worker that cost the browser process more than the calling code. Runs in each
 * global scope before any other code.
 */

// biome-ignore lint/suspicious/noExplicitAny: globals of the browser have no types here
type Any = any;
declare const self: Any;

/**
 * Limits the functions of a scope. Its source text is evaluated in the browser, like `harnessCore`. The browser process
 * forwards each message of a channel to all channels of that name, compares each lock with all others, and receives
 * each line that a frame prints although nothing uses it.
 */
export function boundScope(
  channelsMax: number,
  messagesMax: number,
  locksMax: number,
  forbidden: Readonly<Record<string, readonly string[]>>,
): void {
  const scope = self;
  const { apply, construct, deleteProperty, ownKeys } = Reflect;
  const RefusalError = RangeError;
  const { BroadcastChannel, LockManager } = scope;

  /** Returns a function that can be called `max` times. */
  function bounded<T extends (...values: Any[]) => unknown>(max: number, refusal: string, call: T): T {
    let calls = 0;
    return ((...values: Any[]) => {
      if (calls >= max) throw new RefusalError(refusal);
      calls += 1;
      return call(...values);
    }) as T;
  }

  /** Limits a method. Written as a shorthand method, it keeps its name and `this`, and cannot be used as a constructor. */
  function boundMethod(prototype: Any, name: string, max: number, refusal: string): void {
    const method = prototype[name];
    const call = bounded(max, refusal, (self: Any, values: Any) => apply(method, self, values));
    prototype[name] = {
      [name](this: Any, ...values: Any[]) {
        return call(this, values);
      },
    }[name];
  }

  for (const holder of ownKeys(forbidden) as string[]) {
    const prototype = scope[holder]?.prototype;
    if (prototype === undefined) continue;
    for (const name of forbidden[holder]!) deleteProperty(name in prototype ? prototype : scope, name);
  }

  scope.BroadcastChannel = new Proxy(BroadcastChannel, {
    construct: bounded(channelsMax, `An action may open ${channelsMax} BroadcastChannels`, construct),
  });
  BroadcastChannel.prototype.constructor = scope.BroadcastChannel;
  const messages = `An action may send ${messagesMax} messages over BroadcastChannels`;
  boundMethod(BroadcastChannel.prototype, "postMessage", messagesMax, messages);
  // Only a secure context has locks. A worker gets them only later; there the flood watch limits them.
  if (LockManager) boundMethod(LockManager.prototype, "request", locksMax, `An action may ask for ${locksMax} locks`);

  if (scope.parent === undefined || scope.parent === scope) return;
  const { console } = scope;
  for (const key of ownKeys(console)) if (typeof console[key] === "function") console[key] = () => {};
}
