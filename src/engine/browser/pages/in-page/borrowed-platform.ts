/**
 * Makes of what a worker lends (lent-platform.ts) the classes and functions that a realm lacks, alike to the platform's own. Runs inside the
 * browser, in the realm, before the author's code does.
 */
import type { LentClass, Stand } from "./lent-platform.js";
import type { RealmFaults } from "./realm-faults.js";
import type { RealmRows } from "./realm-rows.js";
import type { RealmSignals } from "./realm-signals.js";
import type { RealmTimers } from "./realm-timers.js";

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;

/**
 * `of`: the class of what is asked; `take`: what is made of the value, told who asked; `above`: what was called, above which the frames of a
 * fault begin; `signal`: what ends it.
 */
interface Asking {
  __proto__: null;
  of?: string;
  take?: ((value: Any, trace: Any) => unknown) | undefined;
  above?: object | undefined;
  signal?: object | undefined;
}

export type BorrowedPlatform = ReturnType<typeof borrowedPlatform>;

/** As `harnessCore`: evaluated by its source text. Takes here all that it uses later, since the author may replace any of it. */
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
  const { parse } = JSON;
  const { iterator, toStringTag } = Symbol;
  const { ReadableByteStreamController, ReadableStream, ReadableStreamBYOBRequest, URL } = scope;
  const { ReadableStreamDefaultController } = scope;
  const OwnPromise = Promise;
  const OwnDate = Date;
  const OwnTypeError = TypeError;
  const { get: getOf, set: setOf } = WeakMap.prototype;
  const { add: addTo, delete: deleteFrom, has: hasIn } = WeakSet.prototype;
  const OwnWeakRef = WeakRef;
  const { deref } = OwnWeakRef.prototype;
  const getterOf = (holder: Any, name: string): Any => getOwnPropertyDescriptor(holder, name)!.get;
  const isLocked = getterOf(ReadableStream.prototype, "locked");
  const { getReader } = ReadableStream.prototype;
  const { enqueue, close } = ReadableByteStreamController.prototype;
  const { enqueue: enqueueAny, close: closeAny } = ReadableStreamDefaultController.prototype;
  const byobRequestOf = getterOf(ReadableByteStreamController.prototype, "byobRequest");
  const { respond } = ReadableStreamBYOBRequest.prototype;
  const entriesPrototype = getPrototypeOf(getPrototypeOf(([] as Any)[iterator]())!) as object;
  const prototypes: Any = { __proto__: null };
  const entriesOfClass: Any = { __proto__: null };
  /** Of streams and entries, what gives the next of them. */
  const givers = new WeakMap<object, Stand>();
  const giverOf = (object: object): Stand => apply(getOf, givers, [object]);
  const PLAIN = { __proto__: null } as Asking;
  /** Of each object, what its attributes have come to that is an object itself: they are asked for once. */
  const attributes = new WeakMap<object, Any>();
  /** Whose body is a text that was given whole. */
  const wholes = new WeakSet<object>();
  /** By its number, each object that the worker has told of. */
  const told: Any = { __proto__: null };
  /** Of each object, the signal that ends what it has under way. */
  const ended = new WeakMap<object, object>();
  const signalOf = (object: unknown): object | undefined =>
    rows.isObject(object) ? apply(getOf, ended, [object as object]) : undefined;

  function define(holder: object, key: PropertyKey, value: unknown, enumerable: boolean): void {
    defineProperty(holder, key, { __proto__: null, value, configurable: true, enumerable, writable: true } as Any);
  }

  /** Reads a row's values in turn. */
  function createReader(row: readonly Any[], { of = "", signal, above = ask }: Asking, trace?: Any): () => Any {
    let at = 0;
    const next = () => {
      at += 1;
      return row[at - 1];
    };
    return function read(): Any {
      const kind = next();
      if (kind === "o") return objectOf(next(), next(), next(), signal);
      if (kind === "b") return rows.bytesOf(next(), next());
      if (kind === "s") return streamOf(next(), next(), next(), signal);
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

  function objectOf(name: string, place: number, stand: Stand, signal: object | undefined): object {
    const known = told[place] === undefined ? undefined : apply(deref, told[place], []);
    if (known !== undefined) return known;
    const object = create(prototypes[name]);
    rows.setStand(object, stand);
    told[place] = new OwnWeakRef(object);
    if (signal !== undefined) apply(setOf, ended, [object, signal]);
    return object;
  }

  function entriesOf(name: string, stand: Stand): object {
    const entries = create(entriesOfClass[name]);
    apply(setOf, givers, [entries, stand]);
    return entries;
  }

  /** What goes through a class's entries: each time it asks for one more. */
  function makeEntries(name: string): void {
    const prototype = create(entriesPrototype);
    const { next } = {
      next() {
        const stand = rows.isObject(this) ? giverOf(this) : undefined;
        if (stand === undefined) throw new OwnTypeError("Illegal invocation");
        const entry = ask(stand, "next");
        return entry.length === 0 ? { done: true, value: undefined } : { done: false, value: entry[0] };
      },
    };
    defineProperty(prototype, toStringTag, { __proto__: null, value: `${name} Iterator`, configurable: true } as Any);
    define(prototype, "next", next, true);
    entriesOfClass[name] = prototype;
  }

  function streamOf(isOfBytes: boolean, isTaken: boolean, stand: Stand, signal: object | undefined): object {
    const source = {
      __proto__: null,
      type: isOfBytes ? "bytes" : undefined,
      pull(controller: Any): unknown {
        const take = (part: Any) => {
          if (part.length > 0) return apply(isOfBytes ? enqueue : enqueueAny, controller, [part[0]]);
          apply(isOfBytes ? close : closeAny, controller, []);
          const waiting = isOfBytes ? apply(byobRequestOf, controller, []) : null;
          if (waiting) apply(respond, waiting, [0]);
        };
        return ask(stand, "read", "", [], { __proto__: null, take, signal });
      },
      cancel: (reason: unknown) => ask(stand, "cancel", "", rows.rowOf([reason])),
    };
    const stream = new ReadableStream(source, { __proto__: null, highWaterMark: 0 });
    apply(setOf, givers, [stream, stand]);
    if (isTaken) apply(getReader, stream, []);
    return stream;
  }

  /** Asks for a member of what is lent. Answers what that comes to, a promise where it comes later. */
  function ask(stand: Stand, verb: string, member = "", row: readonly Any[] = [], asking: Asking = PLAIN): Any {
    const { of = "", take, above = ask } = asking;
    let { signal } = asking;
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
        value = take === undefined ? read : take(read, trace);
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

  /** What the platform says of a body whose stream the realm has locked: while it is asked, its own is locked, too. */
  function whileLocked(object: unknown, work: () => unknown): unknown {
    const body = rows.isObject(object) ? apply(getOf, attributes, [object as object])?.body : undefined;
    if (body === undefined || !apply(isLocked, body, [])) return work();
    const stand = giverOf(body);
    ask(stand, "lock");
    try {
      return work();
    } finally {
      ask(stand, "unlock");
    }
  }

  /** A key's description is another object each time that it is asked for. */
  const isMadeAnew = (value: Any): boolean => isArray(value) || getPrototypeOf(value) === OBJECT;

  /** An attribute's getter. */
  function attribute(lender: Stand, name: string, key: string): PropertyDescriptor {
    const asked = key === "signal" ? "method" : key;
    const holder = {
      get [key](): Any {
        const known: Any = (rows.isObject(this) && apply(getOf, attributes, [this])) || { __proto__: null };
        if (key in known) return known[key];
        const signal = signalOf(this);
        const said = ask(lender, "member", `${name}.${asked}`, rows.rowOf([this]), { __proto__: null, signal });
        // A signal of the worker's would be another than the one that the author has.
        const value = key === "signal" ? signals.following(signal ?? null) : said;
        if (rows.isObject(value) && !isMadeAnew(value)) {
          known[key] = value;
          apply(setOf, attributes, [this, known]);
        }
        return value;
      },
    };
    return getOwnPropertyDescriptor(holder, key)!;
  }

  /** Has the stream that was had of a body locked where the platform's own is. */
  function lockAsOwn(object: unknown): void {
    const body = rows.isObject(object) ? apply(getOf, attributes, [object as object])?.body : undefined;
    if (body !== undefined && !apply(isLocked, body, []) && ask(giverOf(body), "isLocked")) apply(getReader, body, []);
  }

  /** What is made here of a method's value: JSON of a text, and in the author's own bytes what was written into their copy. */
  function takeOf(name: string, key: string, isWhole: boolean, given: unknown): Asking["take"] {
    if (key === "json") return (text, trace) => faults.jsonOf(name, isWhole, text, trace);
    return key === "getRandomValues" ? (bytes) => rows.write(given, bytes) : undefined;
  }

  function methodOf(lender: Stand, { name, iterable }: LentClass, key: string): Any {
    const takesWork = iterable && key === "forEach";
    const { [key]: method } = {
      [key](...values: Any[]): unknown {
        const isWhole = rows.isObject(this) && apply(hasIn, wholes, [this]);
        const take = takeOf(name, key, isWhole, values[0]);
        const asking = { __proto__: null, of: name, take, above: method, signal: signalOf(this) } as Asking;
        const row = rows.rowOf([this]);
        if (takesWork && typeof values[0] === "function") {
          rows.put(row, "c");
          rows.put(
            row,
            rows.callbackOf(values[0], values[1], this, (given) => createReader(given, asking)()),
          );
        } else rows.rowOf(values, row);
        const said = whileLocked(this, () => ask(lender, "member", `${name}.${key}`, row, asking));
        lockAsOwn(this);
        if (key === "clone") {
          // It has taken half of what that one was.
          deleteProperty(apply(getOf, attributes, [this]) ?? {}, "body");
          apply(deleteFrom, wholes, [this]);
        }
        return said;
      },
    };
    return method;
  }

  function sized(made: Any, length: number): Any {
    defineProperty(made, "length", { __proto__: null, value: length } as Any);
    return made;
  }

  const withoutNew = (name: string): string =>
    `Failed to construct '${name}': Please use the 'new' operator, this DOM object constructor cannot be called as a function.`;

  /** A class of the worker's, as it looks there. */
  function makeClass(lender: Stand, one: LentClass): Any {
    const { name, length } = one;
    const made: Any = {
      [name]: function (this: unknown, ...values: Any[]) {
        if (new.target === undefined) throw new OwnTypeError(one.isNamed ? withoutNew(name) : "Illegal constructor");
        const asking = { __proto__: null, above: made, signal: signalOf(values[0]) } as Asking;
        const row = rows.rowOf(values);
        const object = whileLocked(values[0], () => ask(lender, "new", name, row, asking)) as object;
        if (row[0] !== "o" && row[0] !== "r") apply(addTo, wholes, [object]);
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
      const value = isRead ? null : sized(methodOf(lender, one, key), count);
      const description = isRead ? attribute(lender, name, key) : { value, writable: true, configurable: true };
      defineProperty(prototype, key, { __proto__: null, ...description, enumerable: true } as Any);
    }
    defineProperty(prototype, toStringTag, { __proto__: null, value: name, configurable: true } as Any);
    for (const [key, , count] of one.statics) define(made, key, sized(staticOf(lender, name, key), count), true);
    if (one.iterable) {
      define(prototype, iterator, prototype.entries, false);
      makeEntries(name);
    }
    return made;
  }

  function staticOf(lender: Stand, name: string, key: string): Any {
    const rowOf = key === "json" ? rows.rowWithJson : rows.rowOf;
    const { [key]: method } = {
      [key](...values: Any[]): unknown {
        return ask(lender, "static", name, rowOf(values, ["v", key]), { __proto__: null, above: method });
      },
    };
    return method;
  }

  function fetchOf(lender: Stand): Any {
    const { fetch } = {
      fetch(...values: Any[]): unknown {
        const asking = { __proto__: null, above: fetch, signal: signalOf(values[0]) } as Asking;
        return whileLocked(values[0], () => ask(lender, "call", "fetch", rows.rowOf(values), asking));
      },
    };
    return sized(fetch, 1);
  }

  /** What there is of `performance`. */
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
    for (const key of ["createObjectURL", "revokeObjectURL"]) {
      const { [key]: asked } = {
        [key](...values: Any[]): unknown {
          return ask(lender, "call", key, rows.rowOf(values));
        },
      };
      define(URL, key, sized(asked, 1), true);
    }
  };
}
