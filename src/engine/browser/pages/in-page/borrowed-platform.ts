/**
 * Makes of what a worker lends (lent-platform.ts) the classes and functions that a realm lacks, alike to the platform's own. Runs inside the
 * browser, in the realm, before the author's code does.
 */
import type { LentClass, LentDescription, Stand } from "./lent-platform.js";
import type { RealmRows } from "./realm-rows.js";
import type { RealmSignals } from "./realm-signals.js";

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;

/** `of`: the class of what is asked; `take`: what is made of the value; `frames`: of who asks; `signal`: what ends it. */
interface Asking {
  __proto__: null;
  of?: string;
  take?: ((value: Any) => unknown) | undefined;
  frames?: string;
  signal?: object | undefined;
}

export type BorrowedPlatform = ReturnType<typeof borrowedPlatform>;

/** As `harnessCore`: evaluated by its source text. Takes here all that it uses later, since the author may replace any of it. */
export function borrowedPlatform(signals: RealmSignals, makeRows: (signals: RealmSignals) => RealmRows) {
  const rows = makeRows(signals);
  const scope = globalThis as Any;
  const { apply, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, setPrototypeOf } = Reflect;
  const { captureStackTrace } = Error as Any;
  const { create } = Object;
  const { parse } = JSON;
  const { iterator, toStringTag } = Symbol;
  const { DOMException, ReadableByteStreamController, ReadableStream, ReadableStreamBYOBRequest, URL } = scope;
  const OwnPromise = Promise;
  const OwnTypeError = TypeError;
  const ERRORS: Any = { __proto__: null, TypeError, RangeError, SyntaxError };
  const { resolve: resolvedWith } = OwnPromise;
  const { then } = OwnPromise.prototype;
  const { get: getOf, set: setOf } = WeakMap.prototype;
  const { indexOf, slice } = String.prototype;
  const getterOf = (holder: Any, name: string): Any => getOwnPropertyDescriptor(holder, name)!.get;
  const isLocked = getterOf(ReadableStream.prototype, "locked");
  const { enqueue, close } = ReadableByteStreamController.prototype;
  const byobRequestOf = getterOf(ReadableByteStreamController.prototype, "byobRequest");
  const { respond } = ReadableStreamBYOBRequest.prototype;
  const entriesPrototype = getPrototypeOf(getPrototypeOf(([] as Any)[iterator]())!) as object;
  const prototypes: Any = { __proto__: null };
  const PLAIN = { __proto__: null } as Asking;
  /** Of each object, what its attributes have come to that is an object itself: they are asked for once. */
  const attributes = new WeakMap<object, Any>();
  /** Of each object, the signal that ends what it has under way. */
  const ended = new WeakMap<object, object>();
  const signalOf = (object: unknown): object | undefined =>
    rows.isObject(object) ? apply(getOf, ended, [object as object]) : undefined;

  function define(holder: object, key: PropertyKey, value: unknown, enumerable: boolean): void {
    defineProperty(holder, key, { __proto__: null, value, configurable: true, enumerable, writable: true } as Any);
  }

  /** Reads a row's values in turn. */
  function createReader(row: readonly Any[], { of = "", signal }: Asking): () => Any {
    let at = 0;
    const next = () => {
      at += 1;
      return row[at - 1];
    };
    const fault = (kind: string, message: string, name: string) =>
      kind === "DOMException" ? new DOMException(message, name) : new (ERRORS[kind] ?? OwnTypeError)(message);
    return function read(): Any {
      const kind = next();
      if (kind === "o") return objectOf(next(), next(), signal);
      if (kind === "b") return rows.bytesOf(next(), next());
      if (kind === "s") return streamOf(next(), signal);
      if (kind === "i") return entriesOf(of, next());
      if (kind === "e") throw fault(next(), next(), next());
      if (kind !== "l") return next();
      const list: Any[] = [];
      for (let left = next(); left > 0; left -= 1) rows.put(list, read());
      return list;
    };
  }

  function objectOf(name: string, stand: Stand, signal: object | undefined): object {
    const object = create(prototypes[name]);
    rows.setStand(object, stand);
    if (signal !== undefined) apply(setOf, ended, [object, signal]);
    return object;
  }

  /** Goes through entries: each time it asks for one more. */
  function entriesOf(name: string, stand: Stand): Any {
    const entries = create(entriesPrototype);
    const { next } = {
      next() {
        const entry = ask(stand, "next");
        return entry.length === 0 ? { value: undefined, done: true } : { value: entry[0], done: false };
      },
    };
    define(entries, "next", next, true);
    define(entries, toStringTag, `${name} Iterator`, false);
    return entries;
  }

  function streamOf(stand: Stand, signal: object | undefined): object {
    const source = {
      __proto__: null,
      type: "bytes",
      pull(controller: Any): unknown {
        const take = (part: Any) => {
          if (part.length > 0) return apply(enqueue, controller, [part[0]]);
          apply(close, controller, []);
          const waiting = apply(byobRequestOf, controller, []);
          if (waiting) apply(respond, waiting, [0]);
        };
        return ask(stand, "read", "", [], { __proto__: null, take, signal });
      },
      cancel: () => ask(stand, "cancel"),
    };
    return new ReadableStream(source, { __proto__: null, highWaterMark: 0 });
  }

  /** What a failure that comes later has lost: who asked. */
  function withFrames(error: Any, frames: string): unknown {
    if (frames !== "" && error instanceof OwnTypeError)
      define(error, "stack", `TypeError: ${error.message}${frames}`, false);
    return error;
  }

  /** Asks for a member of what is lent. Answers what that comes to, a promise where it comes later. */
  function ask(stand: Stand, verb: string, member = "", row: readonly Any[] = [], asking: Asking = PLAIN): Any {
    const { take, frames = "", signal } = asking;
    let value: unknown;
    let fault: Any = null;
    let later: Any = null;
    const settle = (given: readonly Any[]) => {
      try {
        const read = createReader(given, asking)();
        value = take === undefined ? read : take(read);
        if (later !== null) later.resolve(value);
      } catch (error) {
        fault = { error };
        if (later === null) return;
        const isAborted = signal !== undefined && given[3] === "AbortError" && signals.isAborted(signal);
        later.reject(isAborted ? signals.reasonOf(signal) : withFrames(error, frames));
      }
    };
    const give = (...given: Any[]) => {
      if (given[0] !== "p") return settle(given);
      value = new OwnPromise((resolve, reject) => {
        later = { resolve, reject };
      });
    };
    const words: Any[] = [verb, member, give];
    for (let at = 0; at < row.length; at += 1) rows.put(words, row[at]);
    apply(stand, undefined, words);
    if (fault !== null) throw fault.error;
    return value;
  }

  /** As the platform's promises: what is wrong with the asking comes later, too. */
  function laterOf(work: () => unknown): unknown {
    try {
      return work();
    } catch (error) {
      return new OwnPromise((_, reject) => reject(error));
    }
  }

  function standOf(object: unknown): Stand {
    const stand = rows.standOf(object);
    if (stand === undefined) throw new OwnTypeError("Illegal invocation");
    return stand;
  }

  /** An attribute's getter. */
  function attribute(key: string): PropertyDescriptor {
    const holder = {
      get [key](): Any {
        const known: Any = apply(getOf, attributes, [this]) ?? { __proto__: null };
        if (key in known) return known[key];
        const stand = standOf(this);
        const signal = signalOf(this);
        // A signal of the worker's would be another than the one that the author has.
        const isSignal = key === "signal";
        const value = isSignal
          ? signals.following(signal ?? null)
          : ask(stand, "get", key, [], { __proto__: null, signal });
        if (rows.isObject(value)) {
          known[key] = value;
          apply(setOf, attributes, [this, known]);
        }
        return value;
      },
    };
    return getOwnPropertyDescriptor(holder, key)!;
  }

  /** What reads a body to its end. */
  function reading(name: string, key: string): Any {
    const take = key === "json" ? (text: string) => parse(text) : undefined;
    const member = key === "json" ? "text" : key;
    return {
      [key]() {
        return laterOf(() => {
          const stand = standOf(this);
          const body = apply(getOf, attributes, [this])?.body;
          const isTaken = body !== undefined && apply(isLocked, body, []);
          if (isTaken) throw new OwnTypeError(`Failed to execute '${key}' on '${name}': body stream is locked`);
          return ask(stand, "call", member, [], { __proto__: null, of: name, take, signal: signalOf(this) });
        });
      },
    }[key];
  }

  function forEachOf(name: string): Any {
    return {
      forEach(this: unknown, work: Any, self?: unknown): void {
        const stand = standOf(this);
        if (typeof work !== "function") {
          throw new OwnTypeError(`Failed to execute 'forEach' on '${name}': parameter 1 is not of type 'Function'.`);
        }
        const entries = ask(stand, "iterate", "entries", [], { __proto__: null, of: name, take: (one) => one.next });
        for (let entry = entries(); !entry.done; entry = entries()) {
          apply(work, self, [entry.value[1], entry.value[0], this]);
        }
      },
    }.forEach;
  }

  function methodOf({ name, iterable }: LentClass, key: string): Any {
    if (["text", "json", "arrayBuffer", "bytes", "blob", "formData"].includes(key)) return reading(name, key);
    if (iterable && key === "forEach") return forEachOf(name);
    const verb = iterable && ["entries", "keys", "values"].includes(key) ? "iterate" : "call";
    return {
      [key](...values: Any[]) {
        const asking = { __proto__: null, of: name, signal: signalOf(this) };
        return ask(standOf(this), verb, key, rows.rowOf(values, [], []), asking);
      },
    }[key];
  }

  const SHAPES: Any = {
    __proto__: null,
    Request: ["value", "dictionary"],
    Headers: ["headers"],
    Response: ["value", "dictionary"],
    Blob: ["list", "dictionary"],
    File: ["list", "value", "dictionary"],
    FormData: [],
    json: ["json", "dictionary"],
  };

  /** A class of the worker's, as it looks there. */
  function makeClass(lender: Stand, one: LentClass, members: readonly string[]): Any {
    const { name, length } = one;
    const made: Any = {
      [name]: function (this: unknown, ...values: Any[]) {
        if (new.target === undefined) {
          throw new OwnTypeError(
            `Failed to construct '${name}': Please use the 'new' operator, this DOM object constructor cannot be called as a function.`,
          );
        }
        const row = rows.rowOf(values, SHAPES[name], members);
        const object = ask(lender, "new", name, row, { __proto__: null, signal: row.signal ?? signalOf(values[0]) });
        const { prototype } = new.target;
        if (rows.isObject(prototype)) setPrototypeOf(object, prototype);
        return object;
      },
    }[name];
    const { prototype } = made;
    prototypes[name] = prototype;
    defineProperty(made, "prototype", { __proto__: null, writable: false } as Any);
    defineProperty(made, "length", { __proto__: null, value: length } as Any);
    defineProperty(prototype, toStringTag, { __proto__: null, value: name, configurable: true } as Any);
    for (const [key, isRead, count] of one.members) {
      const description = isRead ? attribute(key) : { value: methodOf(one, key), writable: true, configurable: true };
      defineProperty(prototype, key, { __proto__: null, ...description, enumerable: true } as Any);
      if (!isRead) defineProperty(prototype[key], "length", { __proto__: null, value: count } as Any);
    }
    for (const [key] of one.statics) define(made, key, staticOf(lender, name, key), true);
    if (one.iterable) define(prototype, iterator, prototype.entries, false);
    return made;
  }

  function staticOf(lender: Stand, name: string, key: string): Any {
    const members = key === "json" ? initOfResponse : [];
    return {
      [key](...values: Any[]) {
        return ask(lender, "static", name, rows.rowOf(values, SHAPES[key] ?? [], members, ["v", key]));
      },
    }[key];
  }

  let initOfResponse: readonly string[] = [];

  function fetchOf(lender: Stand, members: readonly string[]): Any {
    const { fetch } = {
      fetch(...values: Any[]): unknown {
        const trace = {} as Any;
        captureStackTrace(trace, fetch);
        const { stack } = trace;
        const frames = typeof stack === "string" ? apply(slice, stack, [apply(indexOf, `${stack}\n`, ["\n"])]) : "";
        return laterOf(() => {
          const row = rows.rowOf(values, SHAPES.Request, members);
          const signal = row.signal ?? signalOf(values[0]);
          return ask(lender, "call", "fetch", row, { __proto__: null, frames, signal });
        });
      },
    };
    return fetch;
  }

  /** Timers, whose work is the realm's and whose clock is the worker's. */
  function timersOf(lender: Stand): Record<string, Any> {
    const { eval: evaluate } = scope;
    const start = (kind: string, work: Any, ms: unknown, values: readonly Any[]): number => {
      const text = typeof work === "function" ? "" : `${work}`;
      const ring = () => {
        try {
          if (typeof work === "function") apply(work, scope, values);
          else evaluate(text);
        } catch {
          // As in a worker: nobody hears of it.
        }
      };
      let id = 0;
      apply(lender, undefined, [
        "timer",
        kind,
        (given: number) => {
          id = given;
        },
        ring,
        Number(ms),
      ]);
      return id;
    };
    const stop = (id: unknown): unknown => apply(lender, undefined, ["stop", "", () => {}, Number(id)]);
    return {
      setTimeout: (work: Any, ms: unknown = 0, ...values: Any[]) => start("setTimeout", work, ms, values),
      setInterval: (work: Any, ms: unknown = 0, ...values: Any[]) => start("setInterval", work, ms, values),
      clearTimeout: (id?: unknown) => stop(id),
      clearInterval: (id?: unknown) => stop(id),
      // A realm's own ends its page where the work throws.
      queueMicrotask(work: Any): void {
        if (typeof work !== "function") {
          throw new OwnTypeError(
            "Failed to execute 'queueMicrotask' on 'WorkerGlobalScope': parameter 1 is not of type 'Function'.",
          );
        }
        const soon = apply(resolvedWith, OwnPromise, []);
        define(soon, "constructor", undefined, false);
        const ring = () => {
          try {
            apply(work, undefined, []);
          } catch {
            // As in a worker: nobody hears of it.
          }
        };
        apply(then, soon, [ring]);
      },
    };
  }

  return (lender: Stand, descriptionJson: string): void => {
    signals.install(lender);
    const { classes, dictionaries }: LentDescription = parse(descriptionJson);
    initOfResponse = dictionaries["Response"]!;
    for (const one of classes) {
      const made = makeClass(lender, one, dictionaries[one.name] ?? []);
      define(scope, one.name, made, false);
      if (one.parent === null) continue;
      setPrototypeOf(made, scope[one.parent]);
      setPrototypeOf(made.prototype, scope[one.parent].prototype);
    }
    define(scope, "fetch", fetchOf(lender, dictionaries["Request"]!), true);
    const timers = timersOf(lender);
    for (const name of Object.keys(timers)) define(scope, name, timers[name], true);
    for (const key of ["createObjectURL", "revokeObjectURL"]) {
      const { [key]: asked } = {
        [key]: (...values: Any[]) => ask(lender, "call", key, rows.rowOf(values, [], [])),
      };
      define(URL, key, asked, true);
    }
  };
}
