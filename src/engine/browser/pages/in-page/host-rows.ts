/** Decodes values that code in a ShadowRealm passes to web platform functions. Runs in the worker of a network isolate. */
import type { Any } from "./any.js";

declare const self: Any;

/**
 * A platform object is an object of the worker, a realm object is an object of the action. A platform error is an error of the browser, a
 * realm error was thrown by the action's code. `promise` means that the row with the result follows later.
 */
export type EncodedValueKind =
  | "primitive"
  | "date"
  | "search-params"
  | "bytes"
  | "list"
  | "record"
  | "iterator"
  | "stream"
  | "signal"
  | "platform-object"
  | "realm-object"
  | "platform-error"
  | "realm-error"
  | "promise";

export type EncodedRow = [kind: EncodedValueKind, ...values: Any[]];

export type ReceiveEncodedValues = (...row: EncodedRow) => unknown;

/** Performs an operation on an object of the realm, such as reading a property. `receive` gets the result as a row. */
export type RealmObjectOperation = (operation: string, receive: ReceiveEncodedValues, argument?: Any) => unknown;

type DecodeRow = (row: readonly Any[]) => Any[];

export type RealmValueDecoder = ReturnType<typeof createRealmValueDecoder>;

/** The browser evaluates this function's source text, so it can use only globals and its own code. */
export function createRealmValueDecoder() {
  /** Error that the action's code threw while the platform read one of its objects, for example in a getter; or an abort reason. */
  class RealmError {
    constructor(readonly index: number) {}
  }

  /** When the platform reads a property of the returned proxy, the proxy reads it in the realm. */
  function createProxy(isCallable: boolean, perform: RealmObjectOperation, decodeRow: DecodeRow): object {
    const callRealm = (operation: string, argument?: unknown): Any => {
      let result: Any;
      const receive = (...row: Any[]) => {
        result = row;
      };
      perform(operation, receive, argument);
      return decodeRow(result)[0];
    };
    return new Proxy(isCallable ? () => {} : {}, {
      get: (_, key) => callRealm("get", key),
      has: (_, key) => callRealm("has", key),
      ownKeys: () => callRealm("keys"),
      getOwnPropertyDescriptor(_, key) {
        const enumerable = callRealm("own", key);
        return enumerable === undefined ? undefined : { value: undefined, configurable: true, enumerable };
      },
      apply: (_target, _self, [argument]) => callRealm("call", argument),
    });
  }

  function decodeBytes(kind: string, base64: string, maxByteLength: number | undefined, isDetached: boolean): Any {
    const bytes = (Uint8Array as Any).fromBase64(base64);
    let { buffer } = bytes;
    if (maxByteLength !== undefined) {
      buffer = new (ArrayBuffer as Any)(bytes.length, { maxByteLength });
      new Uint8Array(buffer).set(bytes);
    }
    const value = kind === "ArrayBuffer" ? buffer : new self[kind](buffer);
    if (isDetached) buffer.transfer();
    return value;
  }

  function encodeView(view: Any): EncodedRow {
    const memory = new Uint8Array(view.buffer, view.byteOffset, view.byteLength) as Any;
    return ["bytes", view[Symbol.toStringTag], memory.toBase64()];
  }

  return { RealmError, createProxy, decodeBytes, encodeView };
}
