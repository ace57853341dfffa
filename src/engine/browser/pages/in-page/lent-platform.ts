/**
 * Lends a realm what the platform gives to a worker alone: `fetch`, its objects and timers. The objects stay in the worker; a realm holds a
 * function for each, for nothing but texts, numbers and functions crosses its border. Runs inside the browser, where no author's code does.
 */
import type { Foreign, Give, LentRows } from "./lent-rows.js";
import type { LentTimers } from "./lent-timers.js";

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;
declare const self: Any;

/**
 * What stands for an object: `verb` and `member` say what is asked of it, `give` hears what that comes to, `values` are what it is asked with.
 * Both are flat rows of words, each with what follows it: `v` a primitive; `o` an object of the platform's, by the function that stands for it
 * (and its class and number, where the realm hears it); `b` bytes: their kind, base64, how far they can grow and whether they are gone (the
 * first two alone, where the realm hears them); `q` search parameters; `c` a function to call; `r` what reads a stream, and whether it is
 * locked; `f` whether an object of the author's can be called, and what does with it what the platform does; `j` the same of what JSON is made
 * of; `a` what hears of an abort; `t` the place of what the author's code has thrown; `s` whether a stream is of bytes and locked, and what
 * reads it; `i` what goes through entries; `d` a date; `l` a number of values, and they; `k` a number of members of a plain object, each
 * by its name and value; `p` that another row comes; `e` the class, message and
 * name of an error, and whether it has a stack.
 */
export type Stand = (verb: string, member: string, give: Give, ...values: Any[]) => unknown;

/** A class as it is to be made again: members by name, whether they are read or called, and how many values a call must have. */
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
 * As `harnessCore`: evaluated by its source text. Walks the platform's own classes, so that none of their members is forgotten.
 * @param names the classes that a realm has by their names
 * @param unnamed those that it meets by their objects alone
 * @param lentMaxCharacters how much may be given to objects of the platform, over all runs, before another thread is needed
 */
export function lentPlatform(
  names: readonly string[],
  unnamed: readonly string[],
  rows: LentRows,
  makeTimers: (convert: LentRows["converted"]) => LentTimers,
  lentMaxCharacters: number,
) {
  const { Thrown, foreignObject, foreignJson, bytesOf } = rows;
  const timersOf = makeTimers(rows.converted);
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

  /** By class and name. */
  const methods = new Map<string, Any>();
  for (const one of classes) {
    for (const [key] of membersOf(one.prototype)) {
      if (key === "constructor") continue;
      const { get, value } = getOwnPropertyDescriptor(one.prototype, key)!;
      methods.set(`${one.name}.${key}`, get ?? value);
    }
  }

  /** A class of ours, else the nearest of the language's by which the realm can say the same. */
  function faultRow(error: Any): Any[] {
    if (error instanceof Thrown) return ["t", error.place];
    if (error instanceof DOMException) {
      const kind = error instanceof QuotaExceededError ? "QuotaExceededError" : "DOMException";
      return ["e", kind, error.message, error.name, getOwnPropertyDescriptor(error, "stack") !== undefined];
    }
    return ["e", error?.name ?? "TypeError", error?.message ?? `${error}`, "", true];
  }

  /** What runs have given to the platform's objects, and what blobs have of elsewhere: held where V8 does not count it, until this thread ends. */
  let lent = 0;
  /** What WebCrypto works on, of which nobody knows yet how large it will be. */
  let underWay = 0;

  /** Keys, alone or as a pair, are held there as well; what else comes of WebCrypto V8 does count. */
  function weighWhenDone(work: Promise<unknown>): void {
    underWay += 1;
    const done = (made?: Any) => {
      underWay -= 1;
      for (const one of [made, made?.publicKey, made?.privateKey]) {
        if (one instanceof CryptoKey) lent += (one.algorithm.length ?? one.algorithm.modulusLength ?? 0) / 8;
      }
    };
    work.then(done, () => done());
  }

  /** What one run borrows. */
  function forRun() {
    const ending = new AbortController();
    const timers = timersOf();
    const begun = performance.now();
    let asked = 0;
    let revealed: unknown = null;
    const places = new WeakMap<object, number>();
    let told = 0;

    /** What cannot be said of a value, of too many bytes say, is a failure as well. */
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

    /** An object stays here; what is asked of it the platform itself is asked with it in hand. */
    function standFor(target: Any): Stand {
      if (target instanceof self.Blob) lent += target.size;
      return () => {
        revealed = target;
      };
    }

    /** By which the realm knows what it has heard of before. */
    function placeOf(target: object): number {
      const place = places.get(target) ?? told + 1;
      if (place > told) told = place;
      places.set(target, place);
      return place;
    }

    /** What a method of the platform's comes to, on whatever it is called: what is none of its objects it says itself. */
    function member(name: string, [target, ...given]: readonly Any[]): unknown {
      const method = methods.get(name);
      const found: Any = name.endsWith(".json") ? readJson(method, target) : apply(method, target, given);
      if (name === "Crypto.getRandomValues") return writtenInto(found);
      if (name.startsWith("SubtleCrypto.")) weighWhenDone(found);
      if (found instanceof ReadableStream) return streamOf(found);
      return Object(found) === found && typeof found.next === "function" ? entriesOf(found) : found;
    }

    /** The bytes of a copy, which the realm puts into the author's own. */
    function writtenInto({ buffer, byteOffset, byteLength }: Any): Uint8Array {
      return buffer.detached ? new Uint8Array() : new Uint8Array(buffer, byteOffset, byteLength);
    }

    /** A row that stands as it is. */
    class Row {
      constructor(readonly row: readonly Any[]) {}
    }

    /** Each asking for the next answers a list of it, or an empty one. */
    function entriesOf(entries: Iterator<unknown>): Row {
      const next: Stand = (_verb, _member, give) =>
        answer(give, () => {
          const { done, value } = entries.next();
          return done ? [] : [value];
        });
      return new Row(["i", next]);
    }

    function isOfBytes(stream: Any): boolean {
      try {
        stream.getReader({ mode: "byob" }).releaseLock();
        return true;
      } catch {
        return false;
      }
    }

    /** The stream is locked as late as its first reading, and while the platform judges one that the realm has locked. */
    function streamOf(stream: Any): Row {
      let reader: Any = null;
      let isHeld = false;
      const verbs: Readonly<Record<string, (...given: Any[]) => unknown>> = {
        lock() {
          if (reader !== null || stream.locked) return;
          reader = stream.getReader();
          isHeld = true;
        },
        unlock() {
          if (!isHeld) return;
          reader.releaseLock();
          reader = null;
          isHeld = false;
        },
        isLocked: () => stream.locked && !isHeld,
        cancel: (...reason) => (reader ?? stream).cancel(...reason),
        read() {
          reader ??= stream.getReader();
          return reader.read().then(({ done, value }: Any) => (done ? [] : [value]));
        },
      };
      const does: Stand = (verb, _member, give, ...values) => answer(give, () => verbs[verb]!(...readRow(values)));
      return new Row(["s", isOfBytes(stream), stream.locked, does]);
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
      if (found) return ["o", found.name, placeOf(value), standFor(value)];
      if (typeof value !== "object" || value === null || getPrototypeOf(value) !== Object.prototype)
        return ["v", value];
      const members = Object.entries(value);
      return ["k", members.length, ...members.flatMap(([key, held]) => [key, ...rowOf(held)])];
    }

    /** A body that the realm makes by parts: what is wrong with one the platform says. */
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

    /** A function of the realm's, of two values. */
    function callbackOf(call: (give: Give, ...row: Any[]) => void) {
      return (value: unknown, key: unknown): void => {
        let row: readonly Any[] = [];
        const give = (...words: Any[]) => {
          row = words;
        };
        call(give, ...rowOf([value, key]));
        readRow(row);
      };
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
        if (kind === "c") return callbackOf(next());
        if (kind === "q") return new URLSearchParams(next());
        if (kind === "f") return foreignObject(next(), next(), readRow);
        if (kind === "j") return foreignJson(next(), readRow);
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

    /**
     * What a request is made with, so that it ends with the run: all but its signal the platform reads itself. One made of another ends with
     * that.
     */
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

    /** JSON is made in the realm, of the text. What is wrong with either the platform says. */
    function readJson(method: Any, target: Any): unknown {
      const isReadable = (target instanceof Response || target instanceof Request) && !target.bodyUsed;
      return isReadable && target.body?.locked === false ? target.text() : apply(method, target, []);
    }

    const globals: Readonly<Record<string, (...values: Any[]) => unknown>> = {
      fetch: request,
      crypto: () => crypto,
      now: () => performance.now() - begun,
      timeOrigin: () => performance.timeOrigin + begun,
      createObjectURL: timers.createObjectURL,
      revokeObjectURL: timers.revokeObjectURL,
    };

    /** Stands for the worker's global scope. */
    const lender: Stand = (verb, asked, give, ...values) => {
      if (ending.signal.aborted) return;
      answer(give, () => {
        if (verb === "timer") return timers.start(asked, values[0], values[1], readRow(values.slice(2)));
        const given = readRow(values);
        if (verb === "stop") return timers.stop(asked, given[0]);
        if (verb === "member") return member(asked, given);
        const one = classes.find(({ name }) => name === asked);
        if (verb === "new" && one === Request && given.length > 0) return new one(given[0], bound(given[0], given[1]));
        if (verb === "new" && one) return new one(...given);
        if (verb === "static" && one) return one[given[0]](...given.slice(1));
        return globals[asked]!(...given);
      });
    };

    return {
      lender,
      /** Ends all that the run has under way: from here on nothing is done for it. Answers how often it called `fetch`. */
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
    isFull: () => underWay > 0 || lent > lentMaxCharacters,
  };
}
