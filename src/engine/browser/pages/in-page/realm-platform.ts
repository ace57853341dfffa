/** Defines the web platform in a ShadowRealm: classes such as `Request`, which use objects of the worker (host-platform.ts). */
import type { Any } from "./any.js";
import type { WorkerObjectHandle, WorkerPlatformClass } from "./host-platform.js";
import type { EncodedValueKind, ReceiveEncodedValues } from "./host-rows.js";
import type { RealmErrorFactory } from "./realm-faults.js";
import type { RealmValueEncoder } from "./realm-rows.js";
import type { RealmAbortSignals } from "./realm-signals.js";
import type { RealmTimers } from "./realm-timers.js";

interface Call {
  __proto__: null;
  convert?: ((value: Any, trace: Any) => unknown) | undefined;
  /** Function that the action called. Its frame and all frames above it are removed from the stack of an error. */
  caller?: object | undefined;
}

export type InstallRealmPlatform = ReturnType<typeof createRealmPlatformInstaller>;

/** The browser evaluates this function's source text. The function stores the globals it uses, because the action may replace them. */
export function createRealmPlatformInstaller(
  signals: RealmAbortSignals,
  createRows: (signals: RealmAbortSignals) => RealmValueEncoder,
  createTimers: RealmTimers,
  errors: RealmErrorFactory,
) {
  const rows = createRows(signals);
  const scope = globalThis as Any;
  const { apply, defineProperty, deleteProperty, getOwnPropertyDescriptor, getPrototypeOf, setPrototypeOf } = Reflect;
  const { captureStackTrace } = Error as Any;
  const { isArray } = Array;
  const { create, prototype: OBJECT } = Object;
  const { parse, stringify } = JSON;
  const { iterator, toStringTag } = Symbol;
  const { ReadableStream, ReadableStreamDefaultController } = scope;
  const RealmPromise = Promise;
  const RealmDate = Date;
  const RealmTypeError = TypeError;
  const { get: getOf, set: setOf } = WeakMap.prototype;
  const RealmWeakRef = WeakRef;
  const { deref } = RealmWeakRef.prototype;
  const { getReader } = ReadableStream.prototype;
  const { enqueue, close } = ReadableStreamDefaultController.prototype;
  const entriesPrototype = getPrototypeOf(getPrototypeOf(([] as Any)[iterator]())!) as object;
  const prototypes: Any = { __proto__: null };
  const entriesOfClass: Any = { __proto__: null };
  const iterators = new WeakMap<object, WorkerObjectHandle>();
  const PLAIN_CALL = { __proto__: null } as Call;
  /** Cached attribute values, so that an attribute returns the same object at each read. */
  const attributes = new WeakMap<object, Any>();
  /** Objects of the realm that stand for objects of the worker, by the number of the worker's object. */
  const objectsByNumber: Any = { __proto__: null };

  function define(holder: object, key: PropertyKey, value: unknown, enumerable: boolean): void {
    defineProperty(holder, key, { __proto__: null, value, configurable: true, enumerable, writable: true } as Any);
  }

  /** Returns a function that decodes the next value of the row at each call. It throws an error that the row contains. */
  function createReader(row: readonly Any[], caller: object, trace?: Any): () => Any {
    let at = 0;
    const next = () => {
      at += 1;
      return row[at - 1];
    };
    return function read(): Any {
      const kind: EncodedValueKind = next();
      if (kind === "platform-object") return getObject(next(), next(), next());
      if (kind === "bytes") return rows.decodeBytes(next(), next());
      if (kind === "stream") return createStream(next(), next());
      if (kind === "signal") return createSignal(next());
      if (kind === "iterator") return createEntriesIterator(next(), next());
      if (kind === "platform-error") throw errors.createError(next(), next(), next(), next(), caller, trace);
      if (kind === "date") return new RealmDate(next());
      if (kind === "realm-error") throw rows.getThrownError(next());
      if (kind === "record") {
        const object = {};
        for (let left = next(); left > 0; left -= 1) define(object, next(), read(), true);
        return object;
      }
      if (kind !== "list") return next();
      const list: Any[] = [];
      for (let left = next(); left > 0; left -= 1) rows.append(list, read());
      return list;
    };
  }

  /** Returns a signal that follows a signal of the worker. */
  function createSignal(listen: (receive: ReceiveEncodedValues) => void): object {
    return signals.create((abortWith) => {
      listen((...row) => {
        try {
          createReader(row, callHost)();
        } catch (reason) {
          abortWith(reason);
        }
      });
    });
  }

  /** Returns the realm's object for an object of the worker. Creates it if the realm has none yet. */
  function getObject(name: string, number: number, handle: WorkerObjectHandle): object {
    const earlier = objectsByNumber[number] === undefined ? undefined : apply(deref, objectsByNumber[number], []);
    if (earlier !== undefined) return earlier;
    const object = create(prototypes[name]);
    rows.setHandle(object, handle);
    objectsByNumber[number] = new RealmWeakRef(object);
    return object;
  }

  function createEntriesIterator(name: string, handle: WorkerObjectHandle): object {
    const entries = create(entriesOfClass[name]);
    apply(setOf, iterators, [entries, handle]);
    return entries;
  }

  function defineIterator(name: string): void {
    const prototype = create(entriesPrototype);
    const { next } = {
      next() {
        const handle = rows.isObject(this) ? apply(getOf, iterators, [this]) : undefined;
        if (handle === undefined) throw new RealmTypeError("Illegal invocation");
        const entry = callHost(handle, "next");
        return entry.length === 0 ? { done: true, value: undefined } : { done: false, value: entry[0] };
      },
    };
    defineProperty(prototype, toStringTag, { __proto__: null, value: `${name} Iterator`, configurable: true } as Any);
    define(prototype, "next", next, true);
    entriesOfClass[name] = prototype;
  }

  function createStream(isLocked: boolean, handle: WorkerObjectHandle): object {
    const source = {
      __proto__: null,
      pull(controller: Any): unknown {
        const convert = (part: Any) => {
          if (part.length > 0) apply(enqueue, controller, [part[0]]);
          else apply(close, controller, []);
        };
        return callHost(handle, "read", "", [], { __proto__: null, convert });
      },
      cancel: (reason: unknown) => callHost(handle, "cancel", "", rows.encodeValues([reason])),
    };
    const stream = new ReadableStream(source, { __proto__: null, highWaterMark: 0 });
    if (isLocked) apply(getReader, stream, []);
    rows.setStreamHandle(stream, handle);
    return stream;
  }

  /** Calls the worker through a handle. Returns the decoded result, or a promise of it; throws if the worker reports an error. */
  function callHost(
    handle: WorkerObjectHandle,
    verb: string,
    member = "",
    row: readonly Any[] = [],
    call: Call = PLAIN_CALL,
  ): Any {
    const { convert, caller = callHost } = call;
    let value: unknown;
    let fault: Any = null;
    let pendingPromise: Any = null;
    let trace: Any;
    const settle = (answer: readonly Any[]) => {
      try {
        const result = createReader(answer, caller, trace)();
        value = convert === undefined ? result : convert(result, trace);
        if (pendingPromise !== null) pendingPromise.resolve(value);
      } catch (error) {
        if (pendingPromise === null) fault = { error };
        else pendingPromise.reject(error);
      }
    };
    const receive = (...answer: Any[]) => {
      if (answer[0] !== "promise") return settle(answer);
      trace = { __proto__: null };
      captureStackTrace(trace, caller);
      value = new RealmPromise((resolve, reject) => {
        pendingPromise = { resolve, reject };
      });
    };
    const message: Any[] = [verb, member, receive];
    for (let at = 0; at < row.length; at += 1) rows.append(message, row[at]);
    apply(handle, undefined, message);
    if (fault !== null) throw fault.error;
    return value;
  }

  /** Attributes whose value is a plain object or array, such as the algorithm of a key, return a new object at each read. */
  const isPlain = (value: Any): boolean => isArray(value) || getPrototypeOf(value) === OBJECT;

  function createAttribute(hostScope: WorkerObjectHandle, name: string, key: string): PropertyDescriptor {
    const holder = {
      get [key](): Any {
        const stored: Any = (rows.isObject(this) && apply(getOf, attributes, [this])) || { __proto__: null };
        if (key in stored) return stored[key];
        const value = callHost(hostScope, "member", `${name}.${key}`, rows.encodeValues([this]));
        if (rows.isObject(value) && !isPlain(value)) {
          stored[key] = value;
          apply(setOf, attributes, [this, stored]);
        }
        return value;
      },
    };
    return getOwnPropertyDescriptor(holder, key)!;
  }

  /** Returns the function that parses a result as JSON, or copies it into the action's buffer. Undefined for most methods. */
  function chooseConversion(key: string, argument: unknown): Call["convert"] {
    if (key === "json") return errors.parseJson;
    return key === "getRandomValues" ? (bytes) => rows.writeBytes(argument, bytes) : undefined;
  }

  /** Reads one entry at a time, because the callback may change the entries. */
  function callForEach(
    hostScope: WorkerObjectHandle,
    name: string,
    object: unknown,
    [work, self]: readonly Any[],
  ): void {
    const entries = callHost(hostScope, "member", `${name}.entries`, rows.encodeValues([object]));
    const handle = apply(getOf, iterators, [entries]);
    for (let entry = callHost(handle, "next"); entry.length > 0; entry = callHost(handle, "next"))
      apply(work, self, [entry[0][1], entry[0][0], object]);
  }

  function createMethod(hostScope: WorkerObjectHandle, { name, iterable }: WorkerPlatformClass, key: string): Any {
    const { [key]: method } = {
      [key](...values: Any[]): unknown {
        if (iterable && key === "forEach" && typeof values[0] === "function")
          return callForEach(hostScope, name, this, values);
        const convert = chooseConversion(key, values[0]);
        const call = { __proto__: null, convert, caller: method } as Call;
        const result = callHost(
          hostScope,
          "member",
          `${name}.${key}`,
          rows.encodeValues(values, rows.encodeValues([this])),
          call,
        );
        // `clone` replaces the body of the original, so the cached body is removed.
        if (key === "clone") deleteProperty(apply(getOf, attributes, [this]) ?? {}, "body");
        return result;
      },
    };
    return method;
  }

  const describeMissingNew = (name: string): string =>
    `Failed to construct '${name}': Please use the 'new' operator, this DOM object constructor cannot be called as a function.`;

  function defineClass(hostScope: WorkerObjectHandle, hostClass: WorkerPlatformClass): Any {
    const { name, length } = hostClass;
    const realmClass: Any = {
      [name]: function (this: unknown, ...values: Any[]) {
        if (new.target === undefined)
          throw new RealmTypeError(hostClass.isNamed ? describeMissingNew(name) : "Illegal constructor");
        const call = { __proto__: null, caller: realmClass } as Call;
        const object = callHost(hostScope, "new", name, rows.encodeValues(values), call) as object;
        const { prototype } = new.target;
        setPrototypeOf(object, rows.isObject(prototype) ? prototype : OBJECT);
        return object;
      },
    }[name];
    const { prototype } = realmClass;
    prototypes[name] = prototype;
    defineProperty(realmClass, "prototype", { __proto__: null, writable: false } as Any);
    rows.setLength(realmClass, length);
    deleteProperty(prototype, "constructor");
    for (const [key, isRead, count] of hostClass.members) {
      if (key === "constructor") {
        define(prototype, key, realmClass, false);
        continue;
      }
      const value = isRead ? null : rows.setLength(createMethod(hostScope, hostClass, key), count);
      const description = isRead
        ? createAttribute(hostScope, name, key)
        : { value, writable: true, configurable: true };
      defineProperty(prototype, key, { __proto__: null, ...description, enumerable: true } as Any);
    }
    defineProperty(prototype, toStringTag, { __proto__: null, value: name, configurable: true } as Any);
    for (const [key, , count] of hostClass.statics)
      define(realmClass, key, rows.setLength(createStaticMethod(hostScope, name, key), count), true);
    if (hostClass.iterable) {
      define(prototype, iterator, prototype.entries, false);
      defineIterator(name);
    }
    return realmClass;
  }

  function createStaticMethod(hostScope: WorkerObjectHandle, name: string, key: string): Any {
    const { [key]: method } = {
      [key](...values: Any[]): unknown {
        // The worker parses this JSON text. `stringify` returns undefined for a value without JSON, and the browser then throws.
        if (key === "json" && values.length > 0) values[0] = stringify(values[0]);
        const call = { __proto__: null, caller: method } as Call;
        return callHost(hostScope, "static", name, rows.encodeValues(values, ["primitive", key]), call);
      },
    };
    return method;
  }

  function createFetch(hostScope: WorkerObjectHandle): Any {
    const { fetch } = {
      fetch(...values: Any[]): unknown {
        const call = { __proto__: null, caller: fetch } as Call;
        return callHost(hostScope, "call", "fetch", rows.encodeValues(values), call);
      },
    };
    return rows.setLength(fetch, 1);
  }

  function createClock(hostScope: WorkerObjectHandle): object {
    const prototype = {
      now: () => callHost(hostScope, "call", "now"),
      get timeOrigin() {
        return callHost(hostScope, "call", "timeOrigin");
      },
    };
    defineProperty(prototype, toStringTag, { __proto__: null, value: "Performance", configurable: true } as Any);
    return create(prototype);
  }

  return (hostScope: WorkerObjectHandle, descriptionJson: string): void => {
    signals.install(hostScope);
    const classes: WorkerPlatformClass[] = parse(descriptionJson);
    for (const hostClass of classes) {
      const realmClass = defineClass(hostScope, hostClass);
      if (hostClass.isNamed) define(scope, hostClass.name, realmClass, false);
      if (hostClass.parent === null) continue;
      setPrototypeOf(realmClass, scope[hostClass.parent]);
      setPrototypeOf(realmClass.prototype, scope[hostClass.parent].prototype);
    }
    define(scope, "fetch", createFetch(hostScope), true);
    define(scope, "crypto", callHost(hostScope, "call", "crypto"), true);
    define(scope, "performance", createClock(hostScope), true);
    const timers = createTimers(hostScope, callHost, rows);
    for (const name of Object.keys(timers)) define(scope, name, timers[name], true);
  };
}
