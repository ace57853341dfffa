/** Encodes values that code in a ShadowRealm passes to the worker. The worker reads the properties of objects through functions. */
import type { Any } from "./any.js";
import type { WorkerObjectHandle } from "./host-platform.js";
import type { RealmObjectOperation } from "./host-rows.js";
import type { RealmAbortSignals } from "./realm-signals.js";

export type RealmValueEncoder = ReturnType<typeof createRealmValueEncoder>;

/** The browser evaluates this function's source text. The function stores the globals it uses, because the action may replace them. */
export function createRealmValueEncoder(signals: RealmAbortSignals) {
  const scope = globalThis as Any;
  const { apply, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
  const { isView } = ArrayBuffer;
  const { AbortSignal, ReadableStream, URLSearchParams } = scope;
  const OwnTypeError = TypeError;
  const OwnUint8Array = Uint8Array as Any;
  const { fromBase64 } = OwnUint8Array;
  const { toBase64, set: setBytes } = OwnUint8Array.prototype;
  const { get: getOf, set: setOf } = WeakMap.prototype;
  const { findGetter, isObject } = signals;
  const typedArrays = getPrototypeOf(Uint8Array.prototype)!;
  const typedArrayGetters = ["buffer", "byteOffset", "byteLength"].map((name) => findGetter(typedArrays, name));
  const dataViewGetters = ["buffer", "byteOffset", "byteLength"].map((name) => findGetter(DataView.prototype, name));
  const readTypedArrayName = findGetter(typedArrays, Symbol.toStringTag as Any);
  const [readByteLength, readMaxByteLength, isResizable, isDetached] = [
    "byteLength",
    "maxByteLength",
    "resizable",
    "detached",
  ].map((name) => findGetter(ArrayBuffer.prototype, name));
  const isLocked = findGetter(ReadableStream.prototype, "locked");
  const isAborted = findGetter(AbortSignal.prototype, "aborted");
  const { toString: searchText } = URLSearchParams.prototype;
  const views: Any = {
    ...{ __proto__: null, Int8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, DataView },
    ...{ Float16Array: scope.Float16Array, Float32Array, Float64Array, BigInt64Array, BigUint64Array },
  };
  const handles = new WeakMap<object, WorkerObjectHandle>();
  const streamHandles = new WeakMap<object, WorkerObjectHandle>();
  /** Errors that the action's code threw while the platform read its objects, and abort reasons. The worker refers to them by index. */
  const thrown: unknown[] = [];

  /** Works even if the action has changed the prototypes of objects or arrays. */
  function append(row: Any[], value: unknown): void {
    const description = { __proto__: null, value, configurable: true, enumerable: true, writable: true };
    defineProperty(row, row.length, description as Any);
  }

  function appendAll(row: Any[], ...words: unknown[]): void {
    for (let at = 0; at < words.length; at += 1) append(row, words[at]);
  }

  /** True if `method` accepts the value as `this`, so that the value is an object of the method's class. */
  function isAcceptedBy(method: Any, value: Any): boolean {
    try {
      apply(method, value, []);
      return true;
    } catch {
      return false;
    }
  }

  /** Returns the bytes of a buffer or view; null if its memory is detached. */
  function getBytes(value: Any): Any {
    const parts = !isView(value)
      ? null
      : apply(readTypedArrayName, value, []) === undefined
        ? dataViewGetters
        : typedArrayGetters;
    const buffer = parts === null ? value : apply(parts[0], value, []);
    if (apply(isDetached, buffer, [])) return null;
    if (parts === null) return new OwnUint8Array(buffer);
    return new OwnUint8Array(buffer, apply(parts[1], value, []), apply(parts[2], value, []));
  }

  function appendBytes(row: Any[], value: Any): void {
    const kind = !isView(value) ? "ArrayBuffer" : (apply(readTypedArrayName, value, []) ?? "DataView");
    const parts = kind === "DataView" ? dataViewGetters : typedArrayGetters;
    const buffer = kind === "ArrayBuffer" ? value : apply(parts[0], value, []);
    const maxByteLength = apply(isResizable, buffer, []) ? apply(readMaxByteLength, buffer, []) : undefined;
    const memory = getBytes(value);
    appendAll(row, "bytes", kind, memory === null ? "" : apply(toBase64, memory, []), maxByteLength, memory === null);
  }

  /** Returns the handle of the worker's stream behind a stream of the realm. Locks the worker's stream if the realm's stream is locked. */
  function getStreamHandle(stream: object): WorkerObjectHandle {
    const handle = apply(getOf, streamHandles, [stream]);
    // Code that names a class of streams runs in a document. So only `tee` creates other streams in an isolate.
    if (handle === undefined) throw new OwnTypeError("a stream of tee() is supported only in a document");
    if (apply(isLocked, stream, [])) handle("lock", "", () => {});
    return handle;
  }

  function storeThrown(error: unknown): number {
    append(thrown, error);
    return thrown.length - 1;
  }

  /** Returns the function through which the platform uses an object of the realm. A call of `value` gets `holder` as `this`. */
  function createOperations(value: Any, holder: unknown): RealmObjectOperation {
    const operations: Any = {
      __proto__: null,
      get: (key: PropertyKey) => encodeValue(value[key], value),
      has: (key: PropertyKey) => ["primitive", key in value],
      keys: () => {
        const keys = ownKeys(value);
        const row: Any[] = ["list", keys.length];
        for (let at = 0; at < keys.length; at += 1) appendAll(row, "primitive", keys[at]);
        return row;
      },
      own: (key: PropertyKey) => ["primitive", getOwnPropertyDescriptor(value, key)?.enumerable],
      call: (argument: unknown) => encodeValue(apply(value, holder, [argument]), undefined),
    };
    return (verb, receive, argument) => {
      let row: readonly Any[];
      try {
        row = operations[verb](argument);
      } catch (error) {
        row = ["realm-error", storeThrown(error)];
      }
      apply(receive, undefined, row);
    };
  }

  function appendObject(row: Any[], value: Any, holder: unknown): void {
    const handle = apply(getOf, handles, [value]);
    if (handle !== undefined) appendAll(row, "platform-object", handle);
    else if (isView(value) || isAcceptedBy(readByteLength, value)) appendBytes(row, value);
    else if (isAcceptedBy(searchText, value)) appendAll(row, "search-params", apply(searchText, value, []));
    else if (isAcceptedBy(isLocked, value)) appendAll(row, "platform-object", getStreamHandle(value));
    else if (isAcceptedBy(isAborted, value))
      appendAll(row, "signal", (abort: (index: number) => void) =>
        signals.onAbort(value, (reason) => abort(storeThrown(reason))),
      );
    else appendAll(row, "realm-object", typeof value === "function", createOperations(value, holder));
  }

  function appendValue(row: Any[], value: unknown, holder?: unknown): void {
    if (isObject(value)) appendObject(row, value, holder);
    else appendAll(row, "primitive", value);
  }

  function encodeValue(value: unknown, holder?: unknown): Any[] {
    const row: Any[] = [];
    appendValue(row, value, holder);
    return row;
  }

  return {
    isObject,
    append,
    setLength(method: Any, length: number): Any {
      defineProperty(method, "length", { __proto__: null, value: length } as Any);
      return method;
    },
    setHandle: (object: object, handle: WorkerObjectHandle) => apply(setOf, handles, [object, handle]),
    setStreamHandle: (stream: object, handle: WorkerObjectHandle) => apply(setOf, streamHandles, [stream, handle]),
    getThrownError: (index: number): unknown => thrown[index],
    encodeValues(values: readonly unknown[], row: Any[] = []): Any[] {
      for (let at = 0; at < values.length; at += 1) appendValue(row, values[at]);
      return row;
    },
    /** Copies bytes into a buffer or view of the action, and returns it. */
    writeBytes(value: unknown, bytes: unknown): unknown {
      const memory = getBytes(value);
      if (memory !== null) apply(setBytes, memory, [bytes]);
      return value;
    },
    decodeBytes(kind: string, base64: string): unknown {
      const bytes = apply(fromBase64, OwnUint8Array, [base64]);
      if (kind === "Uint8Array") return bytes;
      const buffer = apply(typedArrayGetters[0], bytes, []);
      return kind === "ArrayBuffer" ? buffer : new views[kind](buffer);
    },
  };
}
