/** Web platform of a network isolate. Its objects stay in the worker, because only primitives and functions can enter a ShadowRealm. */
import type { Any } from "./any.js";
import type { EncodedRow, EncodedValueKind, RealmValueDecoder, ReceiveEncodedValues } from "./host-rows.js";
import type { WorkerTimers } from "./host-timers.js";

declare const self: Any;

/**
 * Function through which a realm (ShadowRealm of a run) uses an object of the worker. `receive` gets the result. Values are passed in flat
 * rows, where each value starts with its kind.
 */
export type WorkerObjectHandle = (
  verb: string,
  member: string,
  receive: ReceiveEncodedValues,
  ...values: Any[]
) => unknown;

/** Class of the worker's web platform. The realm of a run defines a class with the same members. `isRead` is true for a getter. */
export interface WorkerPlatformClass {
  name: string;
  isNamed: boolean;
  parent: string | null;
  length: number;
  members: readonly (readonly [name: string, isRead: boolean, length: number])[];
  statics: readonly (readonly [name: string, isRead: boolean, length: number])[];
  iterable: boolean;
}

export type WorkerPlatform = ReturnType<typeof createWorkerPlatform>;

/** The browser evaluates this function's source text, so it can use only globals and its own code. */
export function createWorkerPlatform(
  namedClassNames: readonly string[],
  unnamedClassNames: readonly string[],
  rows: RealmValueDecoder,
  createTimers: WorkerTimers,
  hostObjectsMaxCharacters: number,
) {
  const { RealmError, createProxy, decodeBytes } = rows;
  const { AbortController, AbortSignal, DOMException, QuotaExceededError, ReadableStream, Request, Response } = self;
  const { CryptoKey, URLSearchParams, crypto, fetch: send, performance } = self;
  const { apply, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
  const classes = [...namedClassNames, ...unnamedClassNames].map((name) => self[name]);

  function listMembers(holder: object): WorkerPlatformClass["members"] {
    return ownKeys(holder).flatMap((key): WorkerPlatformClass["members"] => {
      const { get, value } = getOwnPropertyDescriptor(holder, key)!;
      if (typeof key === "symbol" || key === "prototype") return [];
      if (get) return [[key, true, 0]];
      return typeof value === "function" ? [[key, false, value.length]] : [];
    });
  }

  function describeClass(hostClass: Any): WorkerPlatformClass {
    const parent = classes.find((other) => other === getPrototypeOf(hostClass))?.name ?? null;
    const { name, length, prototype } = hostClass;
    const iterable = getOwnPropertyDescriptor(prototype, Symbol.iterator) !== undefined;
    const isNamed = namedClassNames.includes(name);
    return {
      name,
      isNamed,
      parent,
      length,
      members: listMembers(prototype),
      statics: listMembers(hostClass),
      iterable,
    };
  }

  const methods = new Map<string, Any>();
  for (const hostClass of classes) {
    for (const [key] of listMembers(hostClass.prototype)) {
      if (key === "constructor") continue;
      const { get, value } = getOwnPropertyDescriptor(hostClass.prototype, key)!;
      methods.set(`${hostClass.name}.${key}`, get ?? value);
    }
  }

  function encodeError(error: Any): EncodedRow {
    if (error instanceof RealmError) return ["realm-error", error.index];
    if (error instanceof DOMException) {
      const kind = error instanceof QuotaExceededError ? "QuotaExceededError" : "DOMException";
      return [
        "platform-error",
        kind,
        error.message,
        error.name,
        getOwnPropertyDescriptor(error, "stack") !== undefined,
      ];
    }
    return ["platform-error", error?.name ?? "TypeError", error?.message ?? `${error}`, "", true];
  }

  /** Characters and bytes in objects of the platform. V8 does not count them, and they are freed only when the thread ends. */
  let heldCharacters = 0;
  let activeOperationCount = 0;

  /** Adds the size of the keys that an operation creates. V8 counts all other results of WebCrypto. */
  function addSizeWhenDone(work: Promise<unknown>): void {
    activeOperationCount += 1;
    const done = (result?: Any) => {
      activeOperationCount -= 1;
      for (const key of [result, result?.publicKey, result?.privateKey]) {
        if (key instanceof CryptoKey) heldCharacters += (key.algorithm.length ?? key.algorithm.modulusLength ?? 0) / 8;
      }
    };
    work.then(done, () => done());
  }

  /** Creates the part of the platform that only one run uses. */
  function createForRun() {
    const runEnd = new AbortController();
    const timers = createTimers();
    const startedAt = performance.now();
    let fetchCount = 0;
    let unwrapped: unknown = null;
    const numbers = new WeakMap<object, number>();
    let lastNumber = 0;

    function encodeResult(work: () => unknown): EncodedRow {
      try {
        return encodeValue(work());
      } catch (error) {
        return encodeError(error);
      }
    }

    /** Passes the result or the error of `work` to `receive`; for a promise, when it settles. Does nothing after the end of the run. */
    function respond(receive: ReceiveEncodedValues, work: () => unknown): void {
      if (runEnd.signal.aborted) return;
      const settle = (row: EncodedRow): void => {
        if (runEnd.signal.aborted) return;
        try {
          receive(...row);
        } catch {
          // The result contains an object that cannot be passed. Without this error, the realm's promise would never settle.
          receive("platform-error", "TypeError", "the value cannot be passed to an isolate (got an object)", "", true);
        }
      };
      try {
        const value = work();
        if (value instanceof Promise) {
          receive("promise");
          value.then(
            (settled) => settle(encodeResult(() => settled)),
            (error) => settle(encodeError(error)),
          );
        } else settle(encodeResult(() => value));
      } catch (error) {
        settle(encodeError(error));
      }
    }

    /** Returns a function for the realm. When the worker gets it back and calls it, `unwrapped` is the worker's object. */
    function createHandle(target: Any): WorkerObjectHandle {
      if (target instanceof self.Blob) heldCharacters += target.size;
      return () => {
        unwrapped = target;
      };
    }

    /** The number lets the realm recognize a worker object that it already has. */
    function getNumber(target: object): number {
      const number = numbers.get(target) ?? lastNumber + 1;
      if (number > lastNumber) lastNumber = number;
      numbers.set(target, number);
      return number;
    }

    /** Calls a method, or reads a getter. The browser itself throws if `this` has the wrong class. */
    function callMember(name: string, [target, ...parameters]: readonly Any[]): unknown {
      const method = methods.get(name);
      const result: Any = name.endsWith(".json") ? readJson(method, target) : apply(method, target, parameters);
      if (name === "Crypto.getRandomValues") return getWrittenBytes(result);
      if (name.startsWith("SubtleCrypto.")) addSizeWhenDone(result);
      if (result instanceof ReadableStream) return encodeStream(result);
      return Object(result) === result && typeof result.next === "function" ? encodeEntries(name, result) : result;
    }

    /** Returns the bytes that the browser wrote into the worker's copy of a buffer. The realm copies them to the original. */
    function getWrittenBytes({ buffer, byteOffset, byteLength }: Any): Uint8Array {
      return buffer.detached ? new Uint8Array() : new Uint8Array(buffer, byteOffset, byteLength);
    }

    class Row {
      constructor(readonly row: EncodedRow) {}
    }

    /** Each call of the encoded function returns a list with the next value, or an empty list at the end. */
    function encodeEntries(methodName: string, entries: Iterator<unknown>): Row {
      const next: WorkerObjectHandle = (_verb, _member, receive) =>
        respond(receive, () => {
          const { done, value } = entries.next();
          return done ? [] : [value];
        });
      return new Row(["iterator", methodName.split(".")[0], next]);
    }

    /** Encodes a stream as a function. The first read through the function, or `lock`, locks the stream. */
    function encodeStream(stream: Any): Row {
      let reader: Any = null;
      const verbs: Readonly<Record<string, (...parameters: Any[]) => unknown>> = {
        cancel: (...reason) => (reader ?? stream).cancel(...reason),
        lock() {
          reader ??= stream.getReader();
        },
        read() {
          reader ??= stream.getReader();
          return reader.read().then(({ done, value }: Any) => (done ? [] : [value]));
        },
      };
      const handle: WorkerObjectHandle = (verb, _member, receive, ...values) => {
        if (verb === "self") unwrapped = stream;
        else respond(receive, () => verbs[verb]!(...decodeRow(values)));
      };
      return new Row(["stream", stream.locked, handle]);
    }

    function encodeValue(value: Any): EncodedRow {
      if (value instanceof Row) return value.row;
      if (value instanceof AbortSignal) return encodeSignal(value);
      if (value instanceof Date) return ["date", value.getTime()];
      if (value instanceof ArrayBuffer) return ["bytes", "ArrayBuffer", (new Uint8Array(value) as Any).toBase64()];
      if (ArrayBuffer.isView(value)) return rows.encodeView(value);
      if (Array.isArray(value)) return ["list", value.length, ...value.flatMap(encodeValue)];
      const hostClass = classes.find(
        ({ prototype }) => typeof value === "object" && value && getPrototypeOf(value) === prototype,
      );
      if (hostClass) return ["platform-object", hostClass.name, getNumber(value), createHandle(value)];
      if (typeof value !== "object" || value === null || getPrototypeOf(value) !== Object.prototype)
        return ["primitive", value];
      const members = Object.entries(value);
      return ["record", members.length, ...members.flatMap(([key, item]) => [key, ...encodeValue(item)])];
    }

    /** Returns a signal that follows a signal of the realm. The platform passes the realm's reason on as a RealmError. */
    function createSignalOfRealm(listen: (abort: (index: number) => void) => void): Any {
      const controller = new AbortController();
      listen((index) => controller.abort(new RealmError(index)));
      return controller.signal;
    }

    /** Encodes the signal of a request as a function that reports when the signal aborts. */
    function encodeSignal(signal: Any): EncodedRow {
      const listen = (receive: ReceiveEncodedValues) => {
        const report = () =>
          respond(receive, () => {
            throw signal.reason;
          });
        if (signal.aborted) report();
        else signal.addEventListener("abort", report);
      };
      return ["signal", listen];
    }

    function decodeRow(row: readonly Any[]): Any[] {
      let at = 0;
      const next = () => {
        const word = row[at];
        at += 1;
        if (typeof word === "string") heldCharacters += word.length;
        return word;
      };
      function read(): Any {
        const kind: EncodedValueKind = next();
        if (kind === "bytes") return decodeBytes(next(), next(), next(), next());
        if (kind === "search-params") return new URLSearchParams(next());
        if (kind === "realm-object") return createProxy(next(), next(), decodeRow);
        if (kind === "signal") return createSignalOfRealm(next());
        if (kind === "realm-error") throw new RealmError(next());
        if (kind === "list") return Array.from({ length: next() }, read);
        if (kind !== "platform-object") return next();
        unwrapped = null;
        next()("self");
        return unwrapped;
      }
      const values: Any[] = [];
      while (at < row.length) values.push(read());
      return values;
    }

    /** Adds a signal that also aborts at the end of the run. The platform reads all other options from `init`, in its usual order. */
    function withRunSignal(info: Any, init: Any): Any {
      const requestSignal = info instanceof Request ? info.signal : undefined;
      if ((init ?? null) === null) return requestSignal === undefined ? { signal: runEnd.signal } : init;
      if (Object(init) !== init) return init;
      const addRunSignal = (signal: unknown = requestSignal) => {
        if ((signal ?? null) === null) return runEnd.signal;
        return signal instanceof AbortSignal ? AbortSignal.any([signal, runEnd.signal]) : signal;
      };
      const get = (_: object, key: PropertyKey) => (key === "signal" ? addRunSignal(init[key]) : init[key]);
      return new Proxy({}, { get });
    }

    function sendRequest(...parameters: Any[]): Promise<unknown> {
      fetchCount += 1;
      return parameters.length === 0 ? send() : send(parameters[0], withRunSignal(parameters[0], parameters[1]));
    }

    /** Reads a body as text, which the realm parses as JSON. If the body cannot be read, calls the method, whose promise then rejects. */
    function readJson(method: Any, target: Any): unknown {
      const isReadable = (target instanceof Response || target instanceof Request) && !target.bodyUsed;
      return isReadable && target.body?.locked === false ? target.text() : apply(method, target, []);
    }

    const globals: Readonly<Record<string, (...values: Any[]) => unknown>> = {
      fetch: sendRequest,
      crypto: () => crypto,
      now: () => performance.now() - startedAt,
      timeOrigin: () => performance.timeOrigin + startedAt,
    };

    const hostScope: WorkerObjectHandle = (verb, name, receive, ...values) =>
      respond(receive, () => {
        if (verb === "timer") return timers.start(name, values[0], decodeRow(values.slice(1)));
        const parameters = decodeRow(values);
        if (verb === "stop") return timers.stop(parameters[0]);
        if (verb === "member") return callMember(name, parameters);
        const hostClass = classes.find((other) => other.name === name);
        if (verb === "new" && hostClass === Request && parameters.length > 0)
          return new Request(parameters[0], withRunSignal(parameters[0], parameters[1]));
        if (verb === "new" && hostClass) return new hostClass(...parameters);
        if (verb === "static" && hostClass) {
          const [key, ...rest] = parameters;
          if (key === "json" && rest[0] !== undefined) rest[0] = JSON.parse(rest[0]);
          return hostClass[key](...rest);
        }
        return globals[name]!(...parameters);
      });

    return {
      hostScope,
      /** Ends the run's requests and timers, and ignores all later calls. Returns the number of the run's `fetch` calls. */
      end(): number {
        runEnd.abort();
        timers.end();
        return fetchCount;
      },
    };
  }

  return {
    description: JSON.stringify(classes.map(describeClass)),
    createForRun,
    isFull: () => activeOperationCount > 0 || heldCharacters > hostObjectsMaxCharacters,
  };
}
