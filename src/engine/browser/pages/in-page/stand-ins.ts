/**
 * Puts something in the place of each global that a realm of the language lacks and the run's own realm has: most can be held, compared and asked for
 * their type, as libraries do with what they may want later. Runs inside the browser, before any other code does.
 */
import type { StandIn } from "../../globals.js";

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;

export type StandInsOf = ReturnType<typeof standIns>;

/**
 * As `harnessCore`: evaluated by its source text. Whatever else is done with a stand-in, of all that can be done with an object, is told
 * and refused: then the run's answer counts for nothing.
 */
export function standIns() {
  const { defineProperty, ownKeys } = Reflect;
  const { hasOwn } = Object;
  const { now } = Date;
  const Refusal = ReferenceError;
  const operations = ownKeys(Reflect).filter((key) => typeof key === "string");

  return (namesJson: string, navigatorJson: string, touched: () => void): void => {
    const refuse = () => {
      touched();
      throw new Refusal("this realm does not have it");
    };
    // Of all: to make one for each took longer than all else of a stand-in.
    const refusals: Any = { __proto__: null };
    for (const operation of operations) refusals[operation] = refuse;
    const inert = () => new Proxy({}, refusals);
    // A library may keep the prototype to compare with it: there is no object of that kind.
    const get = (target: Any, key: unknown) => (key === "prototype" ? target.prototype : refuse());
    const ofFunctions = { __proto__: null, ...refusals, get };
    const construct = (_: unknown, values: unknown[]) => (values.length === 0 ? inert() : refuse());
    const ofInert = { __proto__: null, ...ofFunctions, construct };

    /** There it has more than is known here. */
    function partOf(known: Any): object {
      const getKnown = (_: unknown, key: string) => (hasOwn(known, key) ? known[key] : refuse());
      return new Proxy({}, { __proto__: null, ...refusals, get: getKnown });
    }

    function standIn(kind: StandIn[1]): object {
      if (kind === "scope") return globalThis;
      if (kind === "navigator") return partOf(JSON.parse(navigatorJson));
      if (kind === "object") return inert();
      if (kind === "clock") {
        const timeOrigin = now();
        return partOf({ timeOrigin, now: () => now() - timeOrigin });
      }
      // biome-ignore lint/complexity/useArrowFunction: an arrow function is no constructor
      const target = function () {};
      target.prototype = inert();
      return new Proxy(target, kind === "inert" ? ofInert : ofFunctions);
    }

    const define = (name: PropertyKey, value: unknown) =>
      defineProperty(globalThis, name, { value, configurable: true, writable: true });
    // What is no function there is not replaced by a value: that is lost, refused, or leads the page elsewhere.
    const defineFixed = (name: string, get: () => unknown) =>
      defineProperty(globalThis, name, { get, set: refuse, configurable: true });
    const names: readonly StandIn[] = JSON.parse(namesJson);
    for (const [name, kind] of names) {
      const value = kind === "refused" ? null : standIn(kind);
      if (kind === "refused") defineFixed(name, refuse);
      else if (kind === "function" || kind === "inert") define(name, value);
      else defineFixed(name, () => value);
      if (kind === "scope") define(Symbol.toStringTag, "Window");
    }
  };
}
