/**
 * Turns what a realm's code gives to a borrowed function into rows that cross its border (lent-platform.ts), as the platform would convert it.
 * Runs inside the browser, in the realm, before the author's code does.
 */
import type { Stand } from "./lent-platform.js";
import type { RealmSignals } from "./realm-signals.js";

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;

export type RealmRows = ReturnType<typeof realmRows>;

/** What a borrowed function is asked with; `signal`: the one that one of its dictionaries has. */
export interface Row extends Array<Any> {
  signal?: object;
}

/** As `harnessCore`: evaluated by its source text. Takes here all that it uses later, since the author may replace any of it. */
export function realmRows(signals: RealmSignals) {
  const scope = globalThis as Any;
  const { apply, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
  const { isView } = ArrayBuffer;
  const { stringify } = JSON;
  const { iterator } = Symbol;
  const { ReadableStream, ReadableStreamDefaultReader, URLSearchParams } = scope;
  const OwnUint8Array = Uint8Array as Any;
  const { fromBase64 } = OwnUint8Array;
  const { toBase64 } = OwnUint8Array.prototype;
  const { then } = Promise.prototype;
  const { get: getOf, set: setOf } = WeakMap.prototype;
  const getterOf = (holder: Any, name: string): Any => getOwnPropertyDescriptor(holder, name)!.get;
  const typedArrays = getPrototypeOf(Uint8Array.prototype)!;
  const partOf = ["buffer", "byteOffset", "byteLength"].map((name) => getterOf(typedArrays, name));
  const partOfView = ["buffer", "byteOffset", "byteLength"].map((name) => getterOf(DataView.prototype, name));
  const kindOfArray = getterOf(typedArrays, Symbol.toStringTag as Any);
  const lengthOfBuffer = getterOf(ArrayBuffer.prototype, "byteLength");
  const isLocked = getterOf(ReadableStream.prototype, "locked");
  const { getReader } = ReadableStream.prototype;
  const { read: readPart } = ReadableStreamDefaultReader.prototype;
  const { toString: searchText } = URLSearchParams.prototype;
  const stands = new WeakMap<object, Stand>();

  const isObject = (value: unknown): boolean =>
    (typeof value === "object" && value !== null) || typeof value === "function";

  /** At a list's end, whatever the author has given to all objects or lists. */
  function put(row: Any[], value: unknown): void {
    const description = { __proto__: null, value, configurable: true, enumerable: true, writable: true };
    defineProperty(row, row.length, description as Any);
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

  /** null for what has none. */
  function base64Of(value: Any): string | null {
    const isOfView = isView(value);
    if (!isOfView && !isOf(lengthOfBuffer, value)) return null;
    if (!isOfView) return apply(toBase64, new OwnUint8Array(value), []);
    const parts = apply(kindOfArray, value, []) === undefined ? partOfView : partOf;
    const bytes = new OwnUint8Array(apply(parts[0], value, []), apply(parts[1], value, []), apply(parts[2], value, []));
    return apply(toBase64, bytes, []);
  }

  /** What the worker calls for each part of a stream of the realm's. */
  function readerOf(stream: Any): Any {
    const reader = apply(getReader, stream, []);
    return (give: (isDone: boolean, base64: string) => void, fail: (message: string) => void): void => {
      const part = apply(readPart, reader, []) as object;
      // Else `then` asks it for the kind of promise to make.
      defineProperty(part, "constructor", { __proto__: null, value: undefined } as Any);
      const onPart = ({ done, value }: Any): void => {
        const base64 = done ? "" : base64Of(value);
        if (base64 === null) fail("Received chunk is not a Uint8Array");
        else give(done, base64);
      };
      apply(then, part, [onPart, (error: Any) => fail(`${error?.message ?? error}`)]);
    };
  }

  function putAs(row: Any[], word: string, value: unknown): void {
    put(row, word);
    put(row, value);
  }

  function putPrimitive(row: Any[], value: unknown): void {
    if (value === undefined) put(row, "u");
    else putAs(row, "v", value);
  }

  function putObject(row: Any[], value: Any): void {
    const stand = apply(getOf, stands, [value]);
    const base64 = stand === undefined ? base64Of(value) : null;
    if (stand !== undefined) putAs(row, "o", stand);
    else if (base64 !== null) putAs(row, "b", base64);
    else if (isOf(searchText, value)) putAs(row, "q", apply(searchText, value, []));
    else if (isOf(isLocked, value)) putAs(row, "r", readerOf(value));
    else putPrimitive(row, `${value}`);
  }

  /** A value of no certain kind: a text, unless it is more. */
  function putValue(row: Any[], value: unknown): void {
    if (isObject(value)) putObject(row, value);
    else putPrimitive(row, value);
  }

  const canBeGoneThrough = (value: Any): boolean => value[iterator] !== undefined && value[iterator] !== null;

  /** A list as the platform takes it: of whatever can be gone through. */
  function putList(row: Any[], value: Any, putEntry: (row: Any[], entry: unknown) => void = putValue): void {
    if (!isObject(value) || !canBeGoneThrough(value)) {
      putPrimitive(row, isObject(value) ? `${value}` : value);
      return;
    }
    const entries: unknown[] = [];
    for (const entry of value) put(entries, entry);
    putAs(row, "l", entries.length);
    for (let at = 0; at < entries.length; at += 1) putEntry(row, entries[at]);
  }

  /** An object's own, as pairs. */
  function putRecord(row: Any[], value: Any): void {
    const keys = ownKeys(value);
    const pairs: Any[] = [];
    for (let at = 0; at < keys.length; at += 1) {
      if (!getOwnPropertyDescriptor(value, keys[at]!)?.enumerable) continue;
      const pair: Any[] = [];
      putAs(pair, "l", 2);
      putPrimitive(pair, keys[at]);
      putPrimitive(pair, `${value[keys[at]!]}`);
      put(pairs, pair);
    }
    putAs(row, "l", pairs.length);
    for (let at = 0; at < pairs.length; at += 1) putAll(row, pairs[at]);
  }

  function putAll(row: Any[], words: readonly unknown[]): void {
    for (let at = 0; at < words.length; at += 1) put(row, words[at]);
  }

  function putHeaders(row: Any[], value: Any): void {
    if (!isObject(value) || apply(getOf, stands, [value]) !== undefined) putValue(row, value);
    else if (canBeGoneThrough(value)) putList(row, value, putList);
    else putRecord(row, value);
  }

  /** The members that the platform reads of it. */
  function putDictionary(row: Row, value: Any, members: readonly string[]): void {
    if (!isObject(value)) {
      putPrimitive(row, value);
      return;
    }
    const given: Any[] = [];
    let count = 0;
    for (let at = 0; at < members.length; at += 1) {
      const member = value[members[at]!];
      if (member === undefined) continue;
      count += 1;
      put(given, members[at]);
      if (members[at] === "headers") putHeaders(given, member);
      else if (members[at] === "signal" && signals.isSignal(member)) {
        putAs(given, "a", (abort: () => void) => signals.onAbort(member, abort));
        defineProperty(row, "signal", { __proto__: null, value: member } as Any);
      } else putValue(given, member);
    }
    putAs(row, "d", count);
    putAll(row, given);
  }

  function putJson(row: Any[], value: unknown): void {
    const text: unknown = stringify(value);
    if (text === undefined) put(row, "u");
    else putAs(row, "j", text);
  }

  const kinds: Any = { __proto__: null, list: putList, headers: putHeaders, json: putJson };

  return {
    isObject,
    put,
    /** What stands for each object of the worker's. */
    standOf: (object: unknown): Stand | undefined =>
      isObject(object) ? apply(getOf, stands, [object as object]) : undefined,
    setStand: (object: object, stand: Stand) => apply(setOf, stands, [object, stand]),
    /** `shape`: how each value is converted, by its place; `members`: of what is a dictionary. `row`: what it is put behind. */
    rowOf(values: readonly unknown[], shape: readonly string[], members: readonly string[], row: Row = []): Row {
      for (let at = 0; at < values.length; at += 1) {
        if (shape[at] === "dictionary") putDictionary(row, values[at], members);
        else (kinds[shape[at] ?? ""] ?? putValue)(row, values[at]);
      }
      return row;
    },
    bytesOf(kind: string, base64: string): unknown {
      const bytes = apply(fromBase64, OwnUint8Array, [base64]);
      return kind === "ArrayBuffer" ? apply(partOf[0], bytes, []) : bytes;
    },
  };
}
