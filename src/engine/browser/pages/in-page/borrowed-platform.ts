/**
 * Defines in a realm the classes and functions that the worker lends it (lent-platform.ts), with the same members as the platform's own. Runs
 * in the realm before the action's code.
 */
import type { LentClass, Stand } from "./lent-platform.js";
import type { RealmFaults } from "./realm-faults.js";
import type { RealmRows } from "./realm-rows.js";
import type { RealmSignals } from "./realm-signals.js";
import type { RealmTimers } from "./realm-timers.js";

// biome-ignore lint/suspicious/noExplicitAny: globals of the browser have no types here
type Any = any;

/** Context of a call. */
interface Call {
  __proto__: null;
  /** Class of the object. */
  of?: string;
  /** Converts the result. */
  convert?: ((value: Any, trace: Any) => unknown) | undefined;
  /** The called function. Frames above it are removed from the stack of an error. */
  above?: object | undefined;
  /** Signal that aborts the call. */
  signal?: object | undefined;
}

export type BorrowedPlatform = ReturnType<typeof borrowedPlatform>;

/** Evaluated by its source text, as `harnessCore`. Stores all globals that it uses later, since the action may replace them. */
export function borrowedPlatform(
  signals: RealmSignals,
  makeRows: (signals: RealmSignals) => RealmRows,
  timersOf: RealmTimers,
  faults: RealmFaults,
) {
  const rows = makeRows(signals);
  const scope = globalThis as Any;
  const { apply, defineProperty, deleteProperty, getOwnPropertyDescriptor, getPrototypeOf, setPrototypeOf } = Reflect;
  const { captureStackTrace } = Error as Any;
  const { isArray } = Array;
  const { create, prototype: OBJECT } = Object;
  const { parse, stringify } = JSON;
  const { iterator, toStringTag } = Symbol;
  const { ReadableStream, ReadableStreamDefaultController } = scope;
  const OwnPromise = Promise;
  const OwnDate = Date;
  const OwnTypeError = TypeError;
  const { get: getOf, set: setOf } = WeakMap.prototype;
  const OwnWeakRef = WeakRef;
  const { deref } = OwnWeakRef.prototype;
  const { getReader } = ReadableStream.prototype;
  const { enqueue, close } = ReadableStreamDefaultController.prototype;
  const entriesPrototype = getPrototypeOf(getPrototypeOf(([] as Any)[iterator]())!) as object;
  const prototypes: Any = { __proto__: null };
  const entriesOfClass: Any = { __proto__: null };
  /** The functions that return the next value of iterators of the worker. */
  const iterators = new WeakMap<object, Stand>();
  const PLAIN = { __proto__: null } as Call;
  /** Attributes whose value is an object, by object: each is requested once. */
  const attributes = new WeakMap<object, Any>();
  /** Objects of the worker, by their number. */
  const known: Any = { __proto__: null };
  /** Signals that abort the requests of an object. */
  const ended = new WeakMap<object, object>();
  const signalOf = (object: unknown): object | undefined =>
    rows.isObject(object) ? apply(getOf, ended, [object as object]) : undefined;

  function define(holder: object, key: PropertyKey, value: unknown, enumerable: boolean): void {
    defineProperty(holder, key, { __proto__: null, value, configurable: true, enumerable, writable: true } as Any);
  }

  /** Returns a function that decodes the values of a row in turn. */
  function createReader(row: readonly Any[], { of = "", signal, above = ask }: Call, trace?: Any): () => Any {
    let at = 0;
    const next = () => {
      at += 1;
      return row[at - 1];
    };
    return function read(): Any {
      const kind = next();
      if (kind === "o") return objectOf(next(), next(), next(), signal);
      if (kind === "b") return rows.bytesOf(next(), next());
      if (kind === "s") return streamOf(next(), next(), signal);
      if (kind === "i") return entriesOf(of, next());
      if (kind === "e") throw faults.faultOf(next(), next(), next(), next(), above, trace);
      if (kind === "d") return new OwnDate(next());
      if (kind === "t") throw rows.thrownAt(next());
      if (kind === "k") {
        const made = {};
        for (let left = next(); left > 0; left -= 1) define(made, next(), read(), true);
        return made;
      }
      if (kind !== "l") return next();
      const list: Any[] = [];
      for (let left = next(); left > 0; left -= 1) rows.put(list, read());
      return list;
    };
  }

  function objectOf(name: string, number: number, stand: Stand, signal: object | undefined): object {
    const earlier = known[number] === undefined ? undefined : apply(deref, known[number], []);
    if (earlier !== undefined) return earlier;
    const object = create(prototypes[name]);
    rows.setStand(object, stand);
    known[number] = new OwnWeakRef(object);
    if (signal !== undefined) apply(setOf, ended, [object, signal]);
    return object;
  }

  function entriesOf(name: string, stand: Stand): object {
    const entries = create(entriesOfClass[name]);
    apply(setOf, iterators, [entries, stand]);
    return entries;
  }

  /** Defines the iterator of a class. */
  function makeEntries(name: string): void {
    const prototype = create(entriesPrototype);
    const { next } = {
      next() {
        const stand = rows.isObject(this) ? apply(getOf, iterators, [this]) : undefined;
        if (stand === undefined) throw new OwnTypeError("Illegal invocation");
        const entry = ask(stand, "next");
        return entry.length === 0 ? { done: true, value: undefined } : { done: false, value: entry[0] };
      },
    };
    defineProperty(prototype, toStringTag, { __proto__: null, value: `${name} Iterator`, configurable: true } as Any);
    define(prototype, "next", next, true);
    entriesOfClass[name] = prototype;
  }

  function streamOf(isTaken: boolean, stand: Stand, signal: object | undefined): object {
    const source = {
      __proto__: null,
      pull(controller: Any): unknown {
        const convert = (part: Any) => {
          if (part.length > 0) apply(enqueue, controller, [part[0]]);
          else apply(close, controller, []);
        };
        return ask(stand, "read", "", [], { __proto__: null, convert, signal });
      },
      cancel: (reason: unknown) => ask(stand, "cancel", "", rows.rowOf([reason])),
    };
    const stream = new ReadableStream(source, { __proto__: null, highWaterMark: 0 });
    if (isTaken) apply(getReader, stream, []);
    return stream;
  }

  /** Calls an object of the worker. Returns the result, or a promise if it follows later. */
  function ask(stand: Stand, verb: string, member = "", row: readonly Any[] = [], call: Call = PLAIN): Any {
    const { of = "", convert, above = ask } = call;
    let { signal } = call;
    let value: unknown;
    let fault: Any = null;
    let later: Any = null;
    let isAsked = false;
    let trace: Any;
    const outer = rows.signalRead(undefined);
    const settle = (given: readonly Any[]) => {
      if (!isAsked) signal = rows.signalRead(undefined) ?? signal;
      try {
        const read = createReader(given, { __proto__: null, of, signal, above }, trace)();
        value = convert === undefined ? read : convert(read, trace);
        if (later !== null) later.resolve(value);
      } catch (error) {
        fault = { error };
        if (later === null) return;
        const isAborted = signal !== undefined && given[3] === "AbortError" && signals.isAborted(signal);
        later.reject(isAborted ? signals.reasonOf(signal as object) : error);
      }
    };
    const give = (...given: Any[]) => {
      if (given[0] !== "p") return settle(given);
      trace = { __proto__: null };
      captureStackTrace(trace, above);
      value = new OwnPromise((resolve, reject) => {
        later = { resolve, reject };
      });
    };
    const words: Any[] = [verb, member, give];
    for (let at = 0; at < row.length; at += 1) rows.put(words, row[at]);
    apply(stand, undefined, words);
    signal = rows.signalRead(outer) ?? signal;
    isAsked = true;
    if (fault !== null) throw fault.error;
    return value;
  }

  /** True for the plain objects and lists that describe a key: the platform returns a new one each time. */
  const isCopy = (value: Any): boolean => isArray(value) || getPrototypeOf(value) === OBJECT;

  /** Defines the getter of an attribute. */
  function attribute(lender: Stand, name: string, key: string): PropertyDescriptor {
    const requested = key === "signal" ? "method" : key;
    const holder = {
      get [key](): Any {
        const stored: Any = (rows.isObject(this) && apply(getOf, attributes, [this])) || { __proto__: null };
        if (key in stored) return stored[key];
        const signal = signalOf(this);
        const result = ask(lender, "member", `${name}.${requested}`, rows.rowOf([this]), { __proto__: null, signal });
        // The action must get the signal that it passed, not one of the worker.
        const value = key === "signal" ? signals.following(signal ?? null) : result;
        if (rows.isObject(value) && !isCopy(value)) {
          stored[key] = value;
          apply(setOf, attributes, [this, stored]);
        }
        return value;
      },
    };
    return getOwnPropertyDescriptor(holder, key)!;
  }

  /** Converts the result of a method in the realm: a text to JSON, and written bytes into the action's own buffer. */
  function conversionOf(key: string, argument: unknown): Call["convert"] {
    if (key === "json") return faults.jsonOf;
    return key === "getRandomValues" ? (bytes) => rows.write(argument, bytes) : undefined;
  }

  /** Calls the function for each entry, while entries may change. */
  function forEachOf(lender: Stand, name: string, object: unknown, [work, self]: readonly Any[]): void {
    const call = { __proto__: null, of: name } as Call;
    const entries = ask(lender, "member", `${name}.entries`, rows.rowOf([object]), call);
    const stand = apply(getOf, iterators, [entries]);
    for (let entry = ask(stand, "next"); entry.length > 0; entry = ask(stand, "next"))
      apply(work, self, [entry[0][1], entry[0][0], object]);
  }

  function methodOf(lender: Stand, { name, iterable }: LentClass, key: string): Any {
    const { [key]: method } = {
      [key](...values: Any[]): unknown {
        if (iterable && key === "forEach" && typeof values[0] === "function")
          return forEachOf(lender, name, this, values);
        const convert = conversionOf(key, values[0]);
        const call = { __proto__: null, of: name, convert, above: method, signal: signalOf(this) } as Call;
        const result = ask(lender, "member", `${name}.${key}`, rows.rowOf(values, rows.rowOf([this])), call);
        // The clone has taken over one half of the body.
        if (key === "clone") deleteProperty(apply(getOf, attributes, [this]) ?? {}, "body");
        return result;
      },
    };
    return method;
  }

  function withLength(made: Any, length: number): Any {
    defineProperty(made, "length", { __proto__: null, value: length } as Any);
    return made;
  }

  const withoutNew = (name: string): string =>
    `Failed to construct '${name}': Please use the 'new' operator, this DOM object constructor cannot be called as a function.`;

  /** Defines a class of the worker. */
  function makeClass(lender: Stand, one: LentClass): Any {
    const { name, length } = one;
    const made: Any = {
      [name]: function (this: unknown, ...values: Any[]) {
        if (new.target === undefined) throw new OwnTypeError(one.isNamed ? withoutNew(name) : "Illegal constructor");
        const call = { __proto__: null, above: made, signal: signalOf(values[0]) } as Call;
        const object = ask(lender, "new", name, rows.rowOf(values), call) as object;
        const { prototype } = new.target;
        setPrototypeOf(object, rows.isObject(prototype) ? prototype : OBJECT);
        return object;
      },
    }[name];
    const { prototype } = made;
    prototypes[name] = prototype;
    defineProperty(made, "prototype", { __proto__: null, writable: false } as Any);
    defineProperty(made, "length", { __proto__: null, value: length } as Any);
    deleteProperty(prototype, "constructor");
    for (const [key, isRead, count] of one.members) {
      if (key === "constructor") {
        define(prototype, key, made, false);
        continue;
      }
      const value = isRead ? null : withLength(methodOf(lender, one, key), count);
      const description = isRead ? attribute(lender, name, key) : { value, writable: true, configurable: true };
      defineProperty(prototype, key, { __proto__: null, ...description, enumerable: true } as Any);
    }
    defineProperty(prototype, toStringTag, { __proto__: null, value: name, configurable: true } as Any);
    for (const [key, , count] of one.statics) define(made, key, withLength(staticOf(lender, name, key), count), true);
    if (one.iterable) {
      define(prototype, iterator, prototype.entries, false);
      makeEntries(name);
    }
    return made;
  }

  function staticOf(lender: Stand, name: string, key: string): Any {
    const { [key]: method } = {
      [key](...values: Any[]): unknown {
        const call = { __proto__: null, above: method } as Call;
        if (key !== "json" || values.length === 0)
          return ask(lender, "static", name, rows.rowOf(values, ["v", key]), call);
        // The worker makes the value from its text. Without a text the platform rejects.
        values[0] = stringify(values[0]);
        const hasText = values[0] !== undefined;
        return ask(lender, hasText ? "json" : "static", name, rows.rowOf(values, hasText ? [] : ["v", key]), call);
      },
    };
    return method;
  }

  function fetchOf(lender: Stand): Any {
    const { fetch } = {
      fetch(...values: Any[]): unknown {
        const call = { __proto__: null, above: fetch, signal: signalOf(values[0]) } as Call;
        return ask(lender, "call", "fetch", rows.rowOf(values), call);
      },
    };
    return withLength(fetch, 1);
  }

  /** The clock, which is all that a realm has of `performance`. */
  function clockOf(lender: Stand): object {
    const prototype = {
      now: () => ask(lender, "call", "now"),
      get timeOrigin() {
        return ask(lender, "call", "timeOrigin");
      },
    };
    defineProperty(prototype, toStringTag, { __proto__: null, value: "Performance", configurable: true } as Any);
    return create(prototype);
  }

  return (lender: Stand, descriptionJson: string): void => {
    signals.install(lender);
    const classes: LentClass[] = parse(descriptionJson);
    for (const one of classes) {
      const made = makeClass(lender, one);
      if (one.isNamed) define(scope, one.name, made, false);
      if (one.parent === null) continue;
      setPrototypeOf(made, scope[one.parent]);
      setPrototypeOf(made.prototype, scope[one.parent].prototype);
    }
    define(scope, "fetch", fetchOf(lender), true);
    define(scope, "crypto", ask(lender, "call", "crypto"), true);
    define(scope, "performance", clockOf(lender), true);
    const timers = timersOf(lender, ask, rows);
    for (const name of Object.keys(timers)) define(scope, name, timers[name], true);
  };
}
