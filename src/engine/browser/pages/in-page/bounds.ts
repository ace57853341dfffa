/**
 * Bounds in one document or worker what costs the browser's own process more than it costs the code. Runs inside the browser,
 * in every one of a run's global scopes, before any other code does.
 */

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;
declare const self: Any;

/**
 * As `harnessCore`: evaluated by its source text. Every message of a channel goes to all channels of its name by way of the
 * browser's process, each lock is weighed there against all others, and each line that a frame prints, which nobody reads, goes there too.
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

  /** As `call`, for so many times. */
  function bounded<T extends (...values: Any[]) => unknown>(max: number, refusal: string, call: T): T {
    let calls = 0;
    return ((...values: Any[]) => {
      if (calls >= max) throw new RefusalError(refusal);
      calls += 1;
      return call(...values);
    }) as T;
  }

  /** A method's name and `this`, without the `prototype` that would make it a constructor. */
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
  // Only a secure context has locks, and a worker has them only later: there they are left to the watch from outside.
  if (LockManager) boundMethod(LockManager.prototype, "request", locksMax, `An action may ask for ${locksMax} locks`);

  if (scope.parent === undefined || scope.parent === scope) return;
  const { console } = scope;
  for (const key of ownKeys(console)) if (typeof console[key] === "function") console[key] = () => {};
}
