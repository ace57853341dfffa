/** Replaces globals that an isolate lacks, so that code can be tried in it. Libraries often only store or compare such globals. */

import type { GlobalStandIn } from "../../globals.js";
import type { Any } from "./any.js";

export type DefineStandIns = ReturnType<typeof createStandInDefiner>;

/** Returns a function that defines stand-ins, whose unsupported use ends the trial. The browser evaluates this function's source text. */
export function createStandInDefiner() {
  const { defineProperty, ownKeys } = Reflect;
  const { hasOwn } = Object;
  const { now } = Date;
  const OriginalReferenceError = ReferenceError;
  const operations = ownKeys(Reflect).filter((key) => typeof key === "string");

  return (namesJson: string, navigatorJson: string, onUnsupportedUse: () => void): void => {
    const rejectUse = () => {
      onUnsupportedUse();
      throw new OriginalReferenceError("this global variable does not exist in an isolate");
    };
    // All stand-ins share these proxy handlers, because creating handlers for each would take too long.
    const rejectingHandlers: Any = { __proto__: null };
    for (const operation of operations) rejectingHandlers[operation] = rejectUse;
    /** Returns an object of which each use, such as reading a property, ends the trial. */
    const createUnusableObject = () => new Proxy({}, rejectingHandlers);
    // `prototype` is readable, because many libraries only compare it with other prototypes.
    const get = (target: Any, key: unknown) => (key === "prototype" ? target.prototype : rejectUse());
    const functionHandlers = { __proto__: null, ...rejectingHandlers, get };
    const construct = (_: unknown, values: unknown[]) => (values.length === 0 ? createUnusableObject() : rejectUse());
    const inertClassHandlers = { __proto__: null, ...functionHandlers, construct };

    /** Returns an object of which code can read only the members of `knownMembers`. Any other access ends the trial. */
    function createPartialObject(knownMembers: Any): object {
      const getKnownMember = (_: unknown, key: string) => (hasOwn(knownMembers, key) ? knownMembers[key] : rejectUse());
      return new Proxy({}, { __proto__: null, ...rejectingHandlers, get: getKnownMember });
    }

    function createStandIn(kind: GlobalStandIn[1]): object {
      if (kind === "scope") return globalThis;
      if (kind === "navigator") return createPartialObject(JSON.parse(navigatorJson));
      if (kind === "object") return createUnusableObject();
      if (kind === "clock") {
        const timeOrigin = now();
        return createPartialObject({ timeOrigin, now: () => now() - timeOrigin });
      }
      // biome-ignore lint/complexity/useArrowFunction: an arrow function is no constructor
      const target = function () {};
      target.prototype = createUnusableObject();
      return new Proxy(target, kind === "inert" ? inertClassHandlers : functionHandlers);
    }

    const defineReplaceable = (name: PropertyKey, value: unknown) =>
      defineProperty(globalThis, name, { value, configurable: true, writable: true });
    // An assignment to a fixed global ends the trial, because in a document it would be ignored, throw, or navigate.
    const defineFixed = (name: string, get: () => unknown) =>
      defineProperty(globalThis, name, { get, set: rejectUse, configurable: true });
    for (const [name, kind] of JSON.parse(namesJson) as readonly GlobalStandIn[]) {
      const value = kind === "refused" ? null : createStandIn(kind);
      if (kind === "refused") defineFixed(name, rejectUse);
      else if (kind === "function" || kind === "inert") defineReplaceable(name, value);
      else defineFixed(name, () => value);
      if (kind === "scope") defineReplaceable(Symbol.toStringTag, "Window");
    }
  };
}
