/** Passes values between a realm (ShadowRealm of a run) and its worker, which can exchange only primitives and functions. */
import type { Any } from "./any.js";

/** Row of values, in which each value starts with its kind. */
export type Row = readonly Any[];
type RowReceiver = (...row: Any[]) => unknown;

/** Function through which the other side uses an object. The operation `self` only identifies the object. `receive` gets the result. */
export type ObjectHandle = (operation: string, receive?: RowReceiver, ...row: Any[]) => unknown;

/** Parts that differ between the realm and the worker. */
export interface RowSide {
  isBuffer(value: object): boolean;
  /** If true, a copied buffer that comes back is read as the original. If false, as a new copy: the other side may have changed it. */
  ownsBuffers: boolean;
  /** Appends a copy of the object to the row. Returns false for an object that is not copied: the row then gets a handle of it. */
  appendCopy(row: Any[], value: Any): boolean;
  readCopy(kind: string, next: () => Any, read: () => Any): unknown;
  /** Describes an object for the function `wrap` of the other side. */
  describe(value: object): unknown;
  /** Performs an operation that the other side requests on an object of this side. */
  perform(value: object, operation: string, receive: RowReceiver, row: Row): void;
  /** Creates the object that represents an object of the other side. `context` belongs to the call whose result contains the object. */
  wrap(description: Any, handle: ObjectHandle, context: Any): object;
}

export type CreateRowCodec = ReturnType<typeof createRowCodecFactory>;
export type RowCodec = ReturnType<CreateRowCodec>;

/** The browser evaluates this function's source text on both sides. Stores the globals that it uses: the action may replace them. */
export function createRowCodecFactory() {
  const scope = globalThis as Any;
  const { apply, defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
  const { isView } = ArrayBuffer;
  const OriginalArrayBuffer = ArrayBuffer as Any;
  const OriginalUint8Array = Uint8Array as Any;
  const OriginalWeakMap = WeakMap;
  const OriginalWeakRef = WeakRef;
  const { get: getFromWeakMap, set: setInWeakMap } = WeakMap.prototype;
  const { deref } = WeakRef.prototype;
  const { fromBase64 } = OriginalUint8Array;
  const { toBase64, set: setBytes } = OriginalUint8Array.prototype;
  const findGetter = (holder: Any, name: PropertyKey): Any => getOwnPropertyDescriptor(holder, name)!.get;
  const TypedArrayPrototype = getPrototypeOf(Uint8Array.prototype)!;
  const typedArrayGetters = ["buffer", "byteOffset", "byteLength"].map((name) => findGetter(TypedArrayPrototype, name));
  const dataViewGetters = ["buffer", "byteOffset", "byteLength"].map((name) => findGetter(DataView.prototype, name));
  const readTypedArrayName = findGetter(TypedArrayPrototype, Symbol.toStringTag);
  const [readMaxByteLength, readResizable, readDetached] = ["maxByteLength", "resizable", "detached"].map((name) =>
    findGetter(ArrayBuffer.prototype, name),
  );
  const { transfer } = OriginalArrayBuffer.prototype;
  const viewClasses: Any = {
    ...{ __proto__: null, Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array },
    ...{ Float16Array: scope.Float16Array, Float32Array, Float64Array, BigInt64Array, BigUint64Array, DataView },
  };

  const isObject = (value: unknown): value is object =>
    (typeof value === "object" && value !== null) || typeof value === "function";

  function define(holder: object, key: PropertyKey, value: unknown): void {
    defineProperty(holder, key, {
      __proto__: null,
      value,
      configurable: true,
      enumerable: true,
      writable: true,
    } as Any);
  }

  /** Appends `words` to the row, even if the action has changed the prototypes of objects or arrays. */
  function append(row: Any[], ...words: unknown[]): void {
    for (let at = 0; at < words.length; at += 1) define(row, row.length, words[at]);
  }

  /** Returns the kind, the buffer and the bytes of a buffer or view. `bytes` is null if the memory is detached. */
  function readBytes(value: Any): { kind: string; buffer: Any; bytes: Any } {
    const kind: Any = isView(value) ? (apply(readTypedArrayName, value, []) ?? "DataView") : "ArrayBuffer";
    const getters = kind === "DataView" ? dataViewGetters : typedArrayGetters;
    const buffer = kind === "ArrayBuffer" ? value : apply(getters[0], value, []);
    if (apply(readDetached, buffer, [])) return { kind, buffer, bytes: null };
    if (kind === "ArrayBuffer") return { kind, buffer, bytes: new OriginalUint8Array(buffer) };
    const bytes = new OriginalUint8Array(buffer, apply(getters[1], value, []), apply(getters[2], value, []));
    return { kind, buffer, bytes };
  }

  function appendBytes(row: Any[], value: object): void {
    const { kind, buffer, bytes } = readBytes(value);
    const maxByteLength = apply(readResizable, buffer, []) ? apply(readMaxByteLength, buffer, []) : undefined;
    append(row, "bytes", kind, bytes === null ? "" : apply(toBase64, bytes, []), maxByteLength, bytes === null);
  }

  function createFromBytes(kind: string, base64: string, maxByteLength: number | undefined, detached: boolean): object {
    const bytes: Any = apply(fromBase64, OriginalUint8Array, [base64]);
    let buffer = apply(typedArrayGetters[0], bytes, []);
    if (maxByteLength !== undefined) {
      buffer = new OriginalArrayBuffer(bytes.length, { __proto__: null, maxByteLength });
      apply(setBytes, new OriginalUint8Array(buffer), [bytes]);
    }
    const value = kind === "ArrayBuffer" ? buffer : new viewClasses[kind](buffer);
    if (detached) apply(transfer, buffer, []);
    return value;
  }

  return (side: RowSide) => {
    /** Numbers of this side's objects. By the number, the other side recognizes an object that it has received before. */
    const numberByObject = new OriginalWeakMap<object, number>();
    let lastNumber = 0;
    /** Objects that represent objects of the other side (wrappers), by number. */
    const wrappers: Any = { __proto__: null };
    /** Handles of wrappers and of copied buffers. The other side identifies its object by the handle. */
    const handles = new OriginalWeakMap<object, ObjectHandle>();
    let identifiedObject: unknown = null;

    const createHandle =
      (value: object): ObjectHandle =>
      (operation, receive, ...words) => {
        if (operation === "self") identifiedObject = value;
        else side.perform(value, operation, receive!, words);
      };

    /** Appends an object that the other side uses through its handle. */
    function appendHandle(row: Any[], value: object, number: number, description: unknown): void {
      append(row, "object", number, description, createHandle(value));
    }

    function createObjectNumber(): number {
      lastNumber += 1;
      return lastNumber;
    }

    function appendObject(row: Any[], value: object): void {
      const handle = apply(getFromWeakMap, handles, [value]);
      if (handle !== undefined) append(row, "returned", handle);
      else if (isView(value) || side.isBuffer(value)) {
        appendBytes(row, value);
        append(row, side.ownsBuffers ? createHandle(value) : undefined);
      } else if (!side.appendCopy(row, value)) {
        const number = apply(getFromWeakMap, numberByObject, [value]) ?? createObjectNumber();
        apply(setInWeakMap, numberByObject, [value, number]);
        appendHandle(row, value, number, side.describe(value));
      }
    }

    function appendValue(row: Any[], value: unknown): void {
      if (isObject(value)) appendObject(row, value);
      else append(row, "primitive", value);
    }

    function setHandle<T extends object>(value: T, handle: ObjectHandle | undefined): T {
      if (handle !== undefined) apply(setInWeakMap, handles, [value, handle]);
      return value;
    }

    function getWrapper(number: number, description: Any, handle: ObjectHandle, context: Any): object {
      const knownWrapper = wrappers[number] === undefined ? undefined : apply(deref, wrappers[number], []);
      if (knownWrapper !== undefined) return knownWrapper;
      const wrapper = setHandle(side.wrap(description, handle, context), handle);
      wrappers[number] = new OriginalWeakRef(wrapper);
      return wrapper;
    }

    /** Returns the object of this side whose handle the other side has passed back. */
    function identify(handle: ObjectHandle): unknown {
      identifiedObject = null;
      handle("self");
      return identifiedObject;
    }

    /** Returns the values of a row. Throws an error that the row contains. */
    function decode(row: Row, context?: Any): Any[] {
      let at = 0;
      const next = () => {
        at += 1;
        return row[at - 1];
      };
      function read(): Any {
        const kind: string = next();
        if (kind === "primitive") return next();
        if (kind === "object") return getWrapper(next(), next(), next(), context);
        if (kind === "returned") return identify(next());
        if (kind === "bytes") return setHandle(createFromBytes(next(), next(), next(), next()), next());
        if (kind === "throw") throw read();
        if (kind !== "list") return side.readCopy(kind, next, read);
        const list: Any[] = [];
        for (let left = next(); left > 0; left -= 1) append(list, read());
        return list;
      }
      const values: Any[] = [];
      while (at < row.length) append(values, read());
      return values;
    }

    return {
      isObject,
      define,
      append,
      appendValue,
      /** Appends an object with a new number, so that the other side creates a new wrapper from `description`. */
      appendSnapshot: (row: Any[], value: object, description: unknown) =>
        appendHandle(row, value, createObjectNumber(), description),
      decode,
      isWrapper: (value: unknown): boolean => isObject(value) && apply(getFromWeakMap, handles, [value]) !== undefined,
      encode(values: Row, row: Any[] = []): Any[] {
        for (let at = 0; at < values.length; at += 1) appendValue(row, values[at]);
        return row;
      },
      /** Returns a row with the result of `work`, or with the error that `work` throws. */
      encodeOutcome(work: () => unknown): Any[] {
        const row: Any[] = [];
        try {
          appendValue(row, work());
          return row;
        } catch (error) {
          const failure = ["throw"];
          appendValue(failure, error);
          return failure;
        }
      },
      /** Copies `bytes` into the buffer or view `value`. Returns `value`. */
      writeBytes(value: Any, bytes: unknown): unknown {
        const target = readBytes(value).bytes;
        if (target !== null) apply(setBytes, target, [bytes]);
        return value;
      },
    };
  };
}
