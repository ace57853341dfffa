/** Limits functions that cost far more time in the browser process than in the calling code, and deletes forbidden globals. */
import type { Any } from "./any.js";

declare const self: Any;

/** Runs in the browser, which gets only the source text of this function. So it can use only globals and its own code. */
export function limitGlobalScope(
  channelsMax: number,
  messagesMax: number,
  locksMax: number,
  forbiddenMembers: Readonly<Record<string, readonly string[]>>,
): void {
  const scope = self;
  const { apply, construct, deleteProperty, ownKeys } = Reflect;
  const OriginalRangeError = RangeError;
  const { BroadcastChannel, LockManager } = scope;

  function limitCalls<T extends (...values: Any[]) => unknown>(max: number, message: string, call: T): T {
    let calls = 0;
    return ((...values: Any[]) => {
      if (calls >= max) throw new OriginalRangeError(message);
      calls += 1;
      return call(...values);
    }) as T;
  }

  /** Limits the calls of a method. The new method comes from an object literal, so it has the same name and is no constructor. */
  function limitMethod(prototype: Any, name: string, max: number, message: string): void {
    const method = prototype[name];
    const call = limitCalls(max, message, (self: Any, values: Any) => apply(method, self, values));
    prototype[name] = {
      [name](this: Any, ...values: Any[]) {
        return call(this, values);
      },
    }[name];
  }

  for (const holder of ownKeys(forbiddenMembers) as string[]) {
    const prototype = scope[holder]?.prototype;
    if (prototype === undefined) continue;
    for (const name of forbiddenMembers[holder]!) deleteProperty(name in prototype ? prototype : scope, name);
  }

  scope.BroadcastChannel = new Proxy(BroadcastChannel, {
    construct: limitCalls(channelsMax, `An action can open at most ${channelsMax} BroadcastChannels`, construct),
  });
  BroadcastChannel.prototype.constructor = scope.BroadcastChannel;
  const tooManyMessagesText = `An action can send at most ${messagesMax} messages over BroadcastChannels`;
  limitMethod(BroadcastChannel.prototype, "postMessage", messagesMax, tooManyMessagesText);
  // A worker gets `LockManager` only after this script has run, so a worker's locks have no limit.
  if (LockManager)
    limitMethod(LockManager.prototype, "request", locksMax, `An action can request at most ${locksMax} locks`);

  // In a frame, console methods do nothing, because the service stores only lines of the page and of its workers.
  if (scope.parent === undefined || scope.parent === scope) return;
  const { console } = scope;
  for (const key of ownKeys(console)) if (typeof console[key] === "function") console[key] = () => {};
}
