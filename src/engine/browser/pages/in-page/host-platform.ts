/** Web platform of a network isolate. Its objects stay in the worker, because only primitives and functions can enter a ShadowRealm. */
import type { Any } from "./any.js";
import type { CreateRowCodec, ObjectHandle, Row } from "./rows.js";

declare const self: Any;

type RowReceiver = (...row: Any[]) => void;
type Operation = (...values: Any[]) => unknown;

/** Function through which a realm (ShadowRealm of a run) uses the platform. `receive` gets the result, encoded as a row (rows.ts). */
export type UsePlatform = (operation: string, receive: RowReceiver, ...row: Any[]) => void;

/** Member of a class. `detail` is the number of parameters of a method, or the value of a constant; otherwise 0. */
export type PlatformMember = readonly [
  key: string,
  kind: "constructor" | "method" | "getter" | "accessor" | "constant",
  detail: number,
];

/** Class of the worker's web platform. The realm of a run defines a class with the same members. */
export interface WorkerPlatformClass {
  name: string;
  parent: string | null;
  /** Property `length` of the constructor; null for a prototype of iterators, which has no constructor. */
  length: number | null;
  isGlobal: boolean;
  members: readonly PlatformMember[];
  /** Accessors that each object has as own properties, instead of in its prototype. */
  ownMembers: readonly PlatformMember[];
  staticMembers: readonly PlatformMember[];
  /** Name of the method that iterates over an object; null if there is none. */
  iteration: "entries" | "values" | null;
}

export type WorkerPlatform = ReturnType<typeof createWorkerPlatform>;

/** Runs in the browser, which gets only the source text of this function. So it can use only globals and its own code. */
export function createWorkerPlatform(
  globalClassNames: readonly string[],
  nonGlobalClassNames: readonly string[],
  createRowCodec: CreateRowCodec,
  hostObjectsMaxCharacters: number,
) {
  const { AbortController, AbortSignal, CryptoKey, DOMException, QuotaExceededError, Request, Response } = self;
  const { Blob, URLSearchParams, clearTimeout, crypto, fetch: hostFetch, performance } = self;
  const { apply, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
  const iterators = [new self.Headers().keys(), new self.FormData().keys(), new Response("").body.values()];
  const iteratorPrototypes: Any[] = iterators.map(getPrototypeOf);
  const classes: { name: string; prototype: Any; nativeClass: Any }[] = [
    ...[...globalClassNames, ...nonGlobalClassNames].map((name) => ({
      name,
      prototype: self[name].prototype,
      nativeClass: self[name],
    })),
    ...iteratorPrototypes.map((prototype) => ({
      name: prototype[Symbol.toStringTag],
      prototype,
      nativeClass: undefined,
    })),
  ];
  const nameByPrototype = new Map<unknown, string>([
    ...classes.map(({ name, prototype }) => [prototype, name] as const),
    [self.Iterator.prototype, "Iterator"],
    [getPrototypeOf(getPrototypeOf(async function* () {}.prototype)!), "AsyncIterator"],
  ]);
  /** Operations that the realm can perform, by name. */
  const operations = new Map<string, Operation>();

  /** Describes the members of an object, and adds an operation for each. */
  function describeMembers(holder: Any, prefix: string, isStatic: boolean): PlatformMember[] {
    return ownKeys(holder).flatMap((key): PlatformMember[] => {
      const { get, set, value } = getOwnPropertyDescriptor(holder, key)!;
      if (typeof key === "symbol" || key === "prototype") return [];
      if (key === "constructor") return [[key, "constructor", 0]];
      if (typeof value === "number" && key !== "length") return [[key, "constant", value]];
      const call = get ?? value;
      if (typeof call !== "function") return [];
      // If the target were undefined, methods of `EventTarget` would use the worker's scope, which later runs share.
      operations.set(
        `${prefix}${key}`,
        isStatic
          ? (...values) => apply(value, holder, values)
          : (target, ...values) => apply(call, target ?? {}, values),
      );
      if (set) operations.set(`${prefix}${key}=`, (target, item) => apply(set, target, [item]));
      return [[key, get ? (set ? "accessor" : "getter") : "method", value?.length ?? 0]];
    });
  }

  function describeClass({ name, prototype, nativeClass }: (typeof classes)[number]): WorkerPlatformClass {
    if (nativeClass) operations.set(`new ${name}`, (...values) => new nativeClass(...values));
    const iterate = prototype[Symbol.iterator] ?? prototype[Symbol.asyncIterator];
    return {
      name,
      parent: nameByPrototype.get(getPrototypeOf(prototype)) ?? null,
      length: nativeClass?.length ?? null,
      isGlobal: globalClassNames.includes(name),
      members: describeMembers(prototype, `${name}.`, false),
      ownMembers: name === "Event" ? describeMembers(new self.Event(""), "Event.", false) : [],
      staticMembers: nativeClass ? describeMembers(nativeClass, `${name}:`, true) : [],
      iteration: nativeClass && iterate ? (iterate === prototype.entries ? "entries" : "values") : null,
    };
  }

  const description = JSON.stringify(classes.map(describeClass));

  /** Characters and bytes that the platform's objects may hold. V8 does not count them, and only the thread's end frees them. */
  let objectCharacters = 0;
  /** Number of unsettled promises of the platform. `objectCharacters` includes their objects only after they settle. */
  let pendingPromiseCount = 0;

  function countCharacters(row: Row): void {
    for (const word of row) if (typeof word === "string") objectCharacters += word.length;
  }

  function describeError(error: Any): string {
    if (!(error instanceof DOMException)) return JSON.stringify([error.name, error.message, "", true]);
    const kind = error instanceof QuotaExceededError ? "QuotaExceededError" : "DOMException";
    const hasStack = getOwnPropertyDescriptor(error, "stack") !== undefined;
    return JSON.stringify([kind, error.message, error.name, hasStack]);
  }

  /** Creates the part of the platform that only one run uses. */
  function createRunPlatform() {
    const runEnd = new AbortController();
    const startedAt = performance.now();
    /** Key: timer ID that the run gets, from 1. Value: ID of the same timer in the worker. */
    const timers = new Map<number, number>();
    let lastTimerId = 0;

    const codec = createRowCodec({
      isBuffer: (value) => value instanceof ArrayBuffer,
      ownsBuffers: false,
      appendCopy(row, value) {
        if (value === self) row.push("scope");
        else if (value instanceof Date) row.push("date", value.getTime());
        else if (Array.isArray(value)) {
          row.push("list", value.length);
          codec.encode(value, row);
        } else if (getPrototypeOf(value) === Object.prototype) {
          const members = Object.entries(value);
          row.push("record", members.length);
          for (const [key, item] of members) {
            row.push(key);
            codec.appendValue(row, item);
          }
        } else return false;
        return true;
      },
      readCopy: () => undefined,
      describe(value) {
        if (value instanceof Blob) objectCharacters += (value as Any).size;
        if (value instanceof CryptoKey) {
          const { length, modulusLength } = (value as Any).algorithm;
          objectCharacters += (length ?? modulusLength ?? 0) / 8;
        }
        if (value instanceof Error || value instanceof DOMException) return describeError(value);
        const name = nameByPrototype.get(getPrototypeOf(value));
        if (name === undefined) throw new TypeError(`an isolate does not support the class ${value.constructor?.name}`);
        return name;
      },
      perform: () => {},
      // For search parameters, the description is their text. For any other object, it is true if the object is callable.
      wrap: (description, handle) =>
        typeof description === "string" ? new URLSearchParams(description) : createProxy(description, handle),
    });

    /** When the platform reads a property of the returned proxy, the proxy reads it in the realm. */
    function createProxy(isCallable: boolean, handle: ObjectHandle): object {
      const callRealm = (operation: string, ...values: Any[]): Any => {
        if (runEnd.signal.aborted) return undefined;
        let result: Row = [];
        const receive = (...row: Any[]) => {
          result = row;
        };
        handle(operation, receive, ...codec.encode(values));
        countCharacters(result);
        return codec.decode(result)[0];
      };
      return new Proxy(isCallable ? () => {} : {}, {
        get: (_, key) => callRealm("get", key),
        has: (_, key) => callRealm("has", key),
        ownKeys: () => callRealm("keys"),
        getOwnPropertyDescriptor(_, key) {
          const enumerable = callRealm("enumerable", key);
          return enumerable === undefined ? undefined : { value: undefined, configurable: true, enumerable };
        },
        apply: (_target, target, values) => callRealm("call", target, ...values),
      });
    }

    /** Passes the result or the error of `work` to `receive`; for a promise, when it settles. Does nothing after the end of the run. */
    function respond(receive: RowReceiver, work: () => unknown): void {
      const settle = (getResult: () => unknown): void => {
        const row = codec.encodeOutcome(getResult);
        if (!runEnd.signal.aborted) receive(...row);
      };
      const fail = (error: unknown) =>
        settle(() => {
          throw error;
        });
      try {
        const value = work();
        if (value instanceof Promise) {
          receive("promise");
          pendingPromiseCount += 1;
          const countSettled = () => {
            pendingPromiseCount -= 1;
          };
          value.then(countSettled, countSettled);
          value.then((settled) => settle(() => settled), fail);
        } else settle(() => value);
      } catch (error) {
        fail(error);
      }
    }

    /** Returns the options `init` for `fetch` or `Request` with another signal, which also aborts at the end of the run. */
    function withRunSignal(input: Any, init: Any): Any {
      const requestSignal = input instanceof Request ? input.signal : undefined;
      if ((init ?? null) === null) return requestSignal === undefined ? { signal: runEnd.signal } : init;
      if (Object(init) !== init) return init;
      const addRunSignal = (signal: unknown = requestSignal) => {
        if ((signal ?? null) === null) return runEnd.signal;
        return signal instanceof AbortSignal ? AbortSignal.any([signal, runEnd.signal]) : signal;
      };
      const get = (_: object, key: PropertyKey) => (key === "signal" ? addRunSignal(init[key]) : init[key]);
      return new Proxy({}, { get });
    }

    /** Starts a timer and returns its ID. `kind` is `setTimeout` or `setInterval`. */
    function startTimer(kind: string, values: readonly Any[]): number {
      if (values.length === 0) return self[kind]();
      const [work, ms, ...parameters] = values;
      // Code as text would run outside of the realm, so it is not executed. It is only converted to text, which may throw.
      if (typeof work !== "function") void `${work}`;
      const handleTimer = () => {
        if (kind === "setTimeout") timers.delete(id);
        try {
          if (typeof work === "function") apply(work, self, parameters);
        } catch {
          // Ignores errors of the callback, as a worker does.
        }
      };
      const workerTimerId: number = self[kind](handleTimer, ms);
      lastTimerId += 1;
      const id = lastTimerId;
      timers.set(id, workerTimerId);
      return id;
    }

    function stopTimer(timerId: unknown): void {
      // Converts the timer ID to a 32-bit integer, as browsers do. Timeouts and intervals share one sequence of IDs.
      const id = +(timerId as number) | 0;
      clearTimeout(timers.get(id));
      timers.delete(id);
    }

    /** Reads a body as text, which the realm parses as JSON. If the body cannot be read, calls the browser's method, which rejects. */
    const readJson = (target: Any, method: string): unknown =>
      (target instanceof Response || target instanceof Request) && !target.bodyUsed && target.body?.locked === false
        ? target.text()
        : operations.get(method)!(target);

    /** Returns the bytes that the browser wrote into the worker's copy of a buffer. The realm copies them to the original. */
    function getRandomBytes(...values: Any[]): Uint8Array {
      const { buffer, byteOffset, byteLength } = operations.get("Crypto.getRandomValues")!(...values) as Uint8Array;
      return (buffer as Any).detached ? new Uint8Array() : new Uint8Array(buffer, byteOffset, byteLength);
    }

    /** Operations that replace methods of the worker's classes for this run, and operations for global functions and objects. */
    const runOperations: Readonly<Record<string, Operation>> = {
      fetch: (...values) =>
        values.length === 0 ? hostFetch() : hostFetch(values[0], withRunSignal(values[0], values[1])),
      crypto: () => crypto,
      now: () => performance.now() - startedAt,
      timeOrigin: () => performance.timeOrigin + startedAt,
      setTimeout: (...values) => startTimer("setTimeout", values),
      setInterval: (...values) => startTimer("setInterval", values),
      queueMicrotask: (...values) => self.queueMicrotask(...values),
      clearTimeout: stopTimer,
      clearInterval: stopTimer,
      "new Request": (...values) =>
        values.length === 0 ? new Request() : new Request(values[0], withRunSignal(values[0], values[1])),
      "Request.json": (target) => readJson(target, "Request.json"),
      "Response.json": (target) => readJson(target, "Response.json"),
      "Response:json": (...values) =>
        values[0] === undefined ? Response.json(...values) : Response.json(JSON.parse(values[0]), ...values.slice(1)),
      "Crypto.getRandomValues": getRandomBytes,
      "Event.timeStamp": (target) => (operations.get("Event.timeStamp")!(target) as number) - startedAt,
    };

    const usePlatform: UsePlatform = (name, receive, ...row) => {
      if (runEnd.signal.aborted) return;
      countCharacters(row);
      const perform = Object.hasOwn(runOperations, name) ? runOperations[name]! : operations.get(name)!;
      respond(receive, () => perform(...codec.decode(row)));
    };

    return {
      usePlatform,
      /** Ends the run's requests and timers, and ignores all later calls. */
      end(): void {
        runEnd.abort();
        for (const id of timers.values()) clearTimeout(id);
      },
    };
  }

  return {
    description,
    createRunPlatform,
    isFull: () => pendingPromiseCount > 0 || objectCharacters > hostObjectsMaxCharacters,
  };
}
