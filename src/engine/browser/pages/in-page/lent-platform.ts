/**
 * Gives a realm the functions that only a worker has: `fetch`, its classes, `crypto` and timers. The objects stay in the worker. For each one
 * the realm has a function, since only primitives and functions cross the border of a realm. Runs in the worker of a network isolate, where no
 * code of actions runs.
 */
import type { Foreign, Give, LentRows } from "./lent-rows.js";
import type { LentTimers } from "./lent-timers.js";

// biome-ignore lint/suspicious/noExplicitAny: globals of the browser have no types here
type Any = any;
declare const self: Any;

/**
 * The function that stands for an object of the worker. `verb` and `member` name the operation, `give` receives its result, `values` are its
 * arguments. Arguments and results are flat rows. Each value starts with its kind:
 * - `v`: a primitive
 * - `o`: an object of the platform: its function (to the realm: class, number and function)
 * - `b`: bytes: kind and base64 (to the worker also the maximum length and whether they are detached)
 * - `q`: the text of URLSearchParams
 * - `r`: a stream of the realm: the function that reads it, and whether it is locked
 * - `f`: an object of the realm: whether it can be called, and the function that performs operations on it
 * - `a`: a signal of the realm: the function that adds a listener
 * - `t`: an error that the realm's code threw, by its index
 * - `s`: a stream of the worker: whether it is locked, and the function that reads it
 * - `i`: an iterator of the worker, by the function that returns its next value
 * - `d`: a date
 * - `l`: a list: its length and its values
 * - `k`: a plain object: the number of its members, and each name and value
 * - `p`: announces a row that follows later
 * - `e`: an error of the platform: class, message, name, and whether it has a stack
 */
export type Stand = (verb: string, member: string, give: Give, ...values: Any[]) => unknown;

/** A class of the worker as the realm defines it: members by name, whether they are getters, and their `length`. */
export interface LentClass {
  name: string;
  isNamed: boolean;
  parent: string | null;
  length: number;
  members: readonly (readonly [name: string, isRead: boolean, length: number])[];
  statics: readonly (readonly [name: string, isRead: boolean, length: number])[];
  iterable: boolean;
}

export type LentPlatform = ReturnType<typeof lentPlatform>;

/**
 * Evaluated by its source text, as `harnessCore`. Reads the members from the platform's own classes, so that none is missing.
 * @param names classes that are globals of a realm
 * @param unnamed classes that are no globals of a realm, although it has their objects
 * @param lentMaxCharacters maximum size of all that runs have passed to objects of the platform, before the thread must be replaced
 */
export function lentPlatform(
  names: readonly string[],
  unnamed: readonly string[],
  rows: LentRows,
  timersOf: LentTimers,
  lentMaxCharacters: number,
) {
  const { Thrown, foreignObject, bytesOf } = rows;
  const { AbortController, AbortSignal, DOMException, QuotaExceededError, ReadableStream, Request, Response } = self;
  const { CryptoKey, URLSearchParams, crypto, fetch: send, performance } = self;
  const { apply, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
  const classes = [...names, ...unnamed].map((name) => self[name]);

  function membersOf(holder: object): LentClass["members"] {
    return ownKeys(holder).flatMap((key): LentClass["members"] => {
      const { get, value } = getOwnPropertyDescriptor(holder, key)!;
      if (typeof key === "symbol" || key === "prototype") return [];
      if (get) return [[key, true, 0]];
      return typeof value === "function" ? [[key, false, value.length]] : [];
    });
  }

  function describeClass(one: Any): LentClass {
    const parent = classes.find((other) => other === getPrototypeOf(one))?.name ?? null;
    const { name, length, prototype } = one;
    const iterable = getOwnPropertyDescriptor(prototype, Symbol.iterator) !== undefined;
    const isNamed = names.includes(name);
    return { name, isNamed, parent, length, members: membersOf(prototype), statics: membersOf(one), iterable };
  }

  /** Methods and getters, by class and name. */
  const methods = new Map<string, Any>();
  for (const one of classes) {
    for (const [key] of membersOf(one.prototype)) {
      if (key === "constructor") continue;
      const { get, value } = getOwnPropertyDescriptor(one.prototype, key)!;
      methods.set(`${one.name}.${key}`, get ?? value);
    }
  }

  /** Encodes an error: as an error of the realm, of the platform, or of the language. */
  function faultRow(error: Any): Any[] {
    if (error instanceof Thrown) return ["t", error.place];
    if (error instanceof DOMException) {
      const kind = error instanceof QuotaExceededError ? "QuotaExceededError" : "DOMException";
      return ["e", kind, error.message, error.name, getOwnPropertyDescriptor(error, "stack") !== undefined];
    }
    return ["e", error?.name ?? "TypeError", error?.message ?? `${error}`, "", true];
  }

  /** Characters that objects of the platform hold, and bytes of blobs. V8 does not count them, and they are only freed with the thread. */
  let lent = 0;
  /** Active operations of WebCrypto, whose results have an unknown size. */
  let active = 0;

  /** Adds the size of keys, single or as a pair. V8 counts all other results of WebCrypto. */
  function weighWhenDone(work: Promise<unknown>): void {
    active += 1;
    const done = (made?: Any) => {
      active -= 1;
      for (const one of [made, made?.publicKey, made?.privateKey]) {
        if (one instanceof CryptoKey) lent += (one.algorithm.length ?? one.algorithm.modulusLength ?? 0) / 8;
      }
    };
    work.then(done, () => done());
  }

  /** The functions for one run. */
  function forRun() {
    const ending = new AbortController();
    const timers = timersOf();
    const begun = performance.now();
    let asked = 0;
    let revealed: unknown = null;
    const numbers = new WeakMap<object, number>();
    let lastNumber = 0;

    /** Encodes a result, or the error if it cannot be encoded, such as too many bytes. */
    function rowFor(work: () => unknown): Any[] {
      try {
        return rowOf(work());
      } catch (error) {
        return faultRow(error);
      }
    }

    function answer(give: Give, work: () => unknown): void {
      if (ending.signal.aborted) return;
      const settle = (row: Any[]): void => {
        if (ending.signal.aborted) return;
        try {
          give(...row);
        } catch {
          // It holds an object that cannot cross the border. Without an answer its promise would never settle.
          give("e", "TypeError", "the value cannot be passed to an isolate (got an object)", "", true);
        }
      };
      try {
        const value = work();
        if (value instanceof Promise) {
          give("p");
          value.then(
            (settled) => settle(rowFor(() => settled)),
            (error) => settle(faultRow(error)),
          );
        } else settle(rowFor(() => value));
      } catch (error) {
        settle(faultRow(error));
      }
    }

    /** Makes the function that stands for an object. */
    function standFor(target: Any): Stand {
      if (target instanceof self.Blob) lent += target.size;
      return () => {
        revealed = target;
      };
    }

    /** Number by which the realm recognizes an object that it received before. */
    function numberOf(target: object): number {
      const number = numbers.get(target) ?? lastNumber + 1;
      if (number > lastNumber) lastNumber = number;
      numbers.set(target, number);
      return number;
    }

    /** Calls a method or getter. The platform itself rejects a wrong `this`. */
    function member(name: string, [target, ...given]: readonly Any[]): unknown {
      const method = methods.get(name);
      const found: Any = name.endsWith(".json") ? readJson(method, target) : apply(method, target, given);
      if (name === "Crypto.getRandomValues") return writtenInto(found);
      if (name.startsWith("SubtleCrypto.")) weighWhenDone(found);
      if (found instanceof ReadableStream) return streamOf(found);
      return Object(found) === found && typeof found.next === "function" ? entriesOf(found) : found;
    }

    /** The bytes that the platform wrote into its copy, which the realm writes into the action's buffer. */
    function writtenInto({ buffer, byteOffset, byteLength }: Any): Uint8Array {
      return buffer.detached ? new Uint8Array() : new Uint8Array(buffer, byteOffset, byteLength);
    }

    /** A row that is encoded already. */
    class Row {
      constructor(readonly row: readonly Any[]) {}
    }

    /** Encodes an iterator. Each call returns a list with the next value, or an empty list at the end. */
    function entriesOf(entries: Iterator<unknown>): Row {
      const next: Stand = (_verb, _member, give) =>
        answer(give, () => {
          const { done, value } = entries.next();
          return done ? [] : [value];
        });
      return new Row(["i", next]);
    }

    /** Encodes a stream, which is locked by the first read. */
    function streamOf(stream: Any): Row {
      let reader: Any = null;
      const verbs: Readonly<Record<string, (...given: Any[]) => unknown>> = {
        cancel: (...reason) => (reader ?? stream).cancel(...reason),
        read() {
          reader ??= stream.getReader();
          return reader.read().then(({ done, value }: Any) => (done ? [] : [value]));
        },
      };
      const stand: Stand = (verb, _member, give, ...values) => answer(give, () => verbs[verb]!(...readRow(values)));
      return new Row(["s", stream.locked, stand]);
    }

    function rowOf(value: Any): Any[] {
      if (value instanceof Row) return [...value.row];
      if (value instanceof Date) return ["d", value.getTime()];
      if (value instanceof ArrayBuffer) return ["b", "ArrayBuffer", (new Uint8Array(value) as Any).toBase64()];
      if (ArrayBuffer.isView(value)) return rows.rowOfView(value);
      if (Array.isArray(value)) return ["l", value.length, ...value.flatMap(rowOf)];
      const found = classes.find(
        ({ prototype }) => typeof value === "object" && value && getPrototypeOf(value) === prototype,
      );
      if (found) return ["o", found.name, numberOf(value), standFor(value)];
      if (typeof value !== "object" || value === null || getPrototypeOf(value) !== Object.prototype)
        return ["v", value];
      const members = Object.entries(value);
      return ["k", members.length, ...members.flatMap(([key, held]) => [key, ...rowOf(held)])];
    }

    /** A stream whose parts come from a stream of the realm. The platform rejects wrong parts. */
    function streamOfRealm(read: Foreign, isLocked: boolean) {
      const heard = (verb: string, take: (value: Any) => void, reason?: unknown) =>
        new Promise<void>((resolve, reject) => {
          const give = (...row: Any[]) => {
            try {
              rows.checkPart(row[0]);
              resolve(take(readRow(row)[0]));
            } catch (error) {
              reject(error);
            }
          };
          read(verb, give, reason);
        });
      const source = {
        pull: (controller: Any) =>
          heard("read", (part) => (Array.isArray(part) ? controller.close() : controller.enqueue(part))),
        cancel: (reason: unknown) => heard("cancel", () => {}, Object(reason) === reason ? undefined : reason),
      };
      const stream = new ReadableStream(source, { highWaterMark: 0 });
      if (isLocked) stream.getReader();
      return stream;
    }

    /** A signal that is aborted when the realm's is. */
    function signalOf(listen: (abort: () => void) => void): Any {
      const controller = new AbortController();
      listen(() => controller.abort());
      return controller.signal;
    }

    function readRow(row: readonly Any[]): Any[] {
      let at = 0;
      const next = () => {
        const word = row[at];
        at += 1;
        if (typeof word === "string") lent += word.length;
        return word;
      };
      function read(): Any {
        const kind = next();
        if (kind === "b") return bytesOf(next(), next(), next(), next());
        if (kind === "q") return new URLSearchParams(next());
        if (kind === "f") return foreignObject(next(), next(), readRow);
        if (kind === "r") return streamOfRealm(next(), next());
        if (kind === "a") return signalOf(next());
        if (kind === "t") throw new Thrown(next());
        if (kind === "l") return Array.from({ length: next() }, read);
        if (kind !== "o") return next();
        revealed = null;
        next()("self");
        return revealed;
      }
      const values: Any[] = [];
      while (at < row.length) values.push(read());
      return values;
    }

    /** The init of a request, with a signal that also aborts it at the end of the run. The platform reads all other members itself. */
    function bound(info: Any, init: Any): Any {
      const earlier = info instanceof Request ? info.signal : undefined;
      if ((init ?? null) === null) return earlier === undefined ? { signal: ending.signal } : init;
      if (Object(init) !== init) return init;
      const boundSignal = (signal: unknown = earlier) => {
        if ((signal ?? null) === null) return ending.signal;
        return signal instanceof AbortSignal ? AbortSignal.any([signal, ending.signal]) : signal;
      };
      const get = (_: object, key: PropertyKey) => (key === "signal" ? boundSignal(init[key]) : init[key]);
      return new Proxy({}, { get });
    }

    function request(...given: Any[]): Promise<unknown> {
      asked += 1;
      return given.length === 0 ? send() : send(given[0], bound(given[0], given[1]));
    }

    /** Returns the text of a readable body, which the realm parses; else the platform rejects. */
    function readJson(method: Any, target: Any): unknown {
      const isReadable = (target instanceof Response || target instanceof Request) && !target.bodyUsed;
      return isReadable && target.body?.locked === false ? target.text() : apply(method, target, []);
    }

    const globals: Readonly<Record<string, (...values: Any[]) => unknown>> = {
      fetch: request,
      crypto: () => crypto,
      now: () => performance.now() - begun,
      timeOrigin: () => performance.timeOrigin + begun,
    };

    /** The function that stands for the worker's global scope. */
    const lender: Stand = (verb, asked, give, ...values) => {
      if (ending.signal.aborted) return;
      answer(give, () => {
        if (verb === "timer") return timers.start(asked, values[0], readRow(values.slice(1)));
        const given = readRow(values);
        if (verb === "stop") return timers.stop(given[0]);
        if (verb === "member") return member(asked, given);
        const one = classes.find(({ name }) => name === asked);
        if (verb === "new" && one === Request && given.length > 0) return new one(given[0], bound(given[0], given[1]));
        if (verb === "new" && one) return new one(...given);
        if (verb === "json") return Response.json(JSON.parse(given[0]), ...given.slice(1));
        if (verb === "static" && one) return one[given[0]](...given.slice(1));
        return globals[asked]!(...given);
      });
    };

    return {
      lender,
      /** Ends the run's requests and timers, and ignores all later calls. Returns the number of its `fetch` calls. */
      end(): number {
        ending.abort();
        timers.end();
        return asked;
      },
    };
  }

  return {
    description: JSON.stringify(classes.map(describeClass)),
    forRun,
    isFull: () => active > 0 || lent > lentMaxCharacters,
  };
}
