/**
 * Turns what a realm's code gives to a borrowed function into rows that cross its border (lent-platform.ts). What is no object of the
 * platform's is not converted here: the platform does it, and asks back for each member that it reads. Runs inside the browser, in the realm,
 * before the author's code does.
 */
import type { Stand } from "./lent-platform.js";
import type { Foreign, Give } from "./lent-rows.js";
import type { RealmSignals } from "./realm-signals.js";

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;

export type RealmRows = ReturnType<typeof realmRows>;

/** As `harnessCore`: evaluated by its source text. Takes here all that it uses later, since the author may replace any of it. */
export function realmRows(signals: RealmSignals) {
  const scope = globalThis as Any;
  const { apply, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
  const { isArray } = Array;
  const { isView } = ArrayBuffer;
  const { stringify } = JSON;
  const { ReadableStream, ReadableStreamDefaultReader, URLSearchParams } = scope;
  const OwnUint8Array = Uint8Array as Any;
  const { fromBase64 } = OwnUint8Array;
  const { toBase64, set: setBytes } = OwnUint8Array.prototype;
  const { then } = Promise.prototype;
  const { get: getOf, set: setOf } = WeakMap.prototype;
  const getterOf = (holder: Any, name: string): Any => getOwnPropertyDescriptor(holder, name)!.get;
  const typedArrays = getPrototypeOf(Uint8Array.prototype)!;
  const partOf = ["buffer", "byteOffset", "byteLength"].map((name) => getterOf(typedArrays, name));
  const partOfView = ["buffer", "byteOffset", "byteLength"].map((name) => getterOf(DataView.prototype, name));
  const kindOfArray = getterOf(typedArrays, Symbol.toStringTag as Any);
  const [lengthOf, maxLengthOf, isResizable, isDetached] = ["byteLength", "maxByteLength", "resizable", "detached"].map(
    (name) => getterOf(ArrayBuffer.prototype, name),
  );
  const isLocked = getterOf(ReadableStream.prototype, "locked");
  const { cancel: cancelReader, read: readPart } = ReadableStreamDefaultReader.prototype;
  const { getReader } = ReadableStream.prototype;
  const { toString: searchText } = URLSearchParams.prototype;
  const views: Any = {
    ...{ __proto__: null, Int8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, DataView },
    ...{ Float16Array: scope.Float16Array, Float32Array, Float64Array, BigInt64Array, BigUint64Array },
  };
  const stands = new WeakMap<object, Stand>();
  /** What the author's code has thrown at the platform, which knows it by its place. */
  const thrown: unknown[] = [];
  /** The signal that the platform has read last. */
  let signalRead: object | undefined;

  const isObject = (value: unknown): boolean =>
    (typeof value === "object" && value !== null) || typeof value === "function";

  /** At a list's end, whatever the author has given to all objects or lists. */
  function put(row: Any[], value: unknown): void {
    const description = { __proto__: null, value, configurable: true, enumerable: true, writable: true };
    defineProperty(row, row.length, description as Any);
  }

  function putAll(row: Any[], ...words: unknown[]): void {
    for (let at = 0; at < words.length; at += 1) put(row, words[at]);
  }

  /** Whether it is what that method or attribute is asked of. */
  function isOf(method: Any, value: Any): boolean {
    try {
      apply(method, value, []);
      return true;
    } catch {
      return false;
    }
  }

  /** Whether it is a proxy that has been revoked, of which nothing can be asked. */
  function isOver(value: unknown): boolean {
    try {
      isArray(value);
      return false;
    } catch {
      return true;
    }
  }

  /** The memory of bytes of any kind; null where it is gone. */
  function memoryOf(value: Any): Any {
    const parts = !isView(value) ? null : apply(kindOfArray, value, []) === undefined ? partOfView : partOf;
    const buffer = parts === null ? value : apply(parts[0], value, []);
    if (apply(isDetached, buffer, [])) return null;
    if (parts === null) return new OwnUint8Array(buffer);
    return new OwnUint8Array(buffer, apply(parts[1], value, []), apply(parts[2], value, []));
  }

  function base64Of(value: Any): string {
    const memory = memoryOf(value);
    return memory === null ? "" : apply(toBase64, memory, []);
  }

  /** Their kind, the most that they can grow to, where they can, and whether they are gone. */
  function putBytes(row: Any[], value: Any): void {
    const kind = !isView(value) ? "ArrayBuffer" : (apply(kindOfArray, value, []) ?? "DataView");
    const parts = kind === "DataView" ? partOfView : partOf;
    const buffer = kind === "ArrayBuffer" ? value : apply(parts[0], value, []);
    const most = apply(isResizable, buffer, []) ? apply(maxLengthOf, buffer, []) : undefined;
    putAll(row, "b", kind, base64Of(value), most, apply(isDetached, buffer, []));
  }

  /** What the worker calls for each part of a stream of the realm's, and to have it end. It is locked as late as it is first asked. */
  function readerOf(stream: Any): Any {
    let reader: Any = null;
    return (verb: string, give: Give, reason: unknown): void => {
      try {
        reader ??= apply(getReader, stream, []);
      } catch (error) {
        give("t", keep(error));
        return;
      }
      const method = verb === "read" ? readPart : cancelReader;
      const part = apply(method, reader, verb === "read" ? [] : [reason]) as object;
      // Else `then` asks it for the kind of promise to make.
      defineProperty(part, "constructor", { __proto__: null, value: undefined } as Any);
      const onPart = (one: Any): void => {
        if (one === undefined || one.done) give("l", 0);
        else apply(give, undefined, apply(rowOfValue, undefined, [one.value]));
      };
      void apply(then, part, [onPart, (error: unknown) => give("t", keep(error))]);
    };
  }

  /** Keeps what was thrown. Answers its place. */
  function keep(error: unknown): number {
    put(thrown, error);
    return thrown.length - 1;
  }

  /** What does with an object whatever the platform does when it converts one. `holder`: what it was read from, if it was. */
  function foreignOf(value: Any, holder: unknown): Foreign {
    const does: Any = {
      __proto__: null,
      get: (key: PropertyKey) => rowOfValue(value[key], value),
      has: (key: PropertyKey) => ["v", key in value],
      keys: () => {
        const keys = ownKeys(value);
        const row: Any[] = ["l", keys.length];
        for (let at = 0; at < keys.length; at += 1) putAll(row, "v", keys[at]);
        return row;
      },
      own: (key: PropertyKey) => ["v", getOwnPropertyDescriptor(value, key)?.enumerable],
      call: (given: unknown) => rowOfValue(apply(value, holder, [given]), undefined),
      json: () => ["v", stringify(value)],
    };
    return (verb, give, given) => {
      let row: readonly Any[];
      try {
        row = does[verb](given);
      } catch (error) {
        row = ["t", keep(error)];
      }
      apply(give, undefined, row);
    };
  }

  function putObject(row: Any[], value: Any, holder: unknown): void {
    const stand = apply(getOf, stands, [value]);
    if (stand !== undefined) putAll(row, "o", stand);
    else if (isView(value) || isOf(lengthOf, value)) putBytes(row, value);
    else if (isOf(searchText, value)) putAll(row, "q", apply(searchText, value, []));
    else if (isOf(isLocked, value)) putAll(row, "r", readerOf(value), apply(isLocked, value, []));
    else if (signals.isSignal(value)) {
      signalRead = value;
      putAll(row, "a", (abort: () => void) => signals.onAbort(value, abort));
    } else putAll(row, "f", typeof value === "function", isOver(value) ? null : foreignOf(value, holder));
  }

  function putValue(row: Any[], value: unknown, holder?: unknown): void {
    if (isObject(value)) putObject(row, value, holder);
    else putAll(row, "v", value);
  }

  function rowOfValue(value: unknown, holder?: unknown): Any[] {
    const row: Any[] = [];
    putValue(row, value, holder);
    return row;
  }

  return {
    isObject,
    put,
    /** The signal that the platform has read since this was last asked, in whose place `next` is from here on. */
    signalRead(next: object | undefined): object | undefined {
      const read = signalRead;
      signalRead = next;
      return read;
    },
    /** The author's function, called with what the platform calls it with and then with `last`. */
    callbackOf(work: Any, self: unknown, last: unknown, read: (row: readonly Any[]) => unknown): Give {
      return (give: Give, ...given: Any[]): void => {
        let row: readonly Any[] = ["v", undefined];
        try {
          const values = read(given) as readonly unknown[];
          apply(work, self, [values[0], values[1], last]);
        } catch (error) {
          row = ["t", keep(error)];
        }
        apply(give, undefined, row);
      };
    },
    /** What stands for each object of the worker's. */
    standOf: (object: unknown): Stand | undefined =>
      isObject(object) ? apply(getOf, stands, [object as object]) : undefined,
    setStand: (object: object, stand: Stand) => apply(setOf, stands, [object, stand]),
    /** What is thrown there was thrown here. */
    thrownAt: (place: number): unknown => thrown[place],
    /** `row`: what it is put behind. */
    rowOf(values: readonly unknown[], row: Any[] = []): Any[] {
      for (let at = 0; at < values.length; at += 1) putValue(row, values[at]);
      return row;
    },
    /** The same of values whose first is to be made JSON of. */
    rowWithJson(values: readonly unknown[], row: Any[]): Any[] {
      for (let at = 0; at < values.length; at += 1) {
        if (at === 0) putAll(row, "j", foreignOf(values[at], undefined));
        else putValue(row, values[at]);
      }
      return row;
    },
    /** Puts as many bytes as it has into it. */
    write(value: unknown, bytes: unknown): unknown {
      const memory = memoryOf(value);
      if (memory !== null) apply(setBytes, memory, [bytes]);
      return value;
    },
    bytesOf(kind: string, base64: string): unknown {
      const bytes = apply(fromBase64, OwnUint8Array, [base64]);
      if (kind === "Uint8Array") return bytes;
      const buffer = apply(partOf[0], bytes, []);
      return kind === "ArrayBuffer" ? buffer : new views[kind](buffer);
    },
  };
}
