/** Decodes values that code in a ShadowRealm passes to web platform functions. Runs in the worker of a network isolate. */
import type { Any } from "./any.js";

declare const self: Any;

export type ReceiveEncodedValues = (...row: Any[]) => unknown;

/** Performs an operation on an object of the realm, such as reading a property. `receive` gets the result as a row. */
export type RealmObjectOperation = (operation: string, receive: ReceiveEncodedValues, argument?: Any) => unknown;

type ReadRow = (row: readonly Any[]) => Any[];

export type RealmValueDecoder = ReturnType<typeof createRealmValueDecoder>;

/** The browser evaluates this function's source text, so it can use only globals and its own code. */
export function createRealmValueDecoder() {
  /** Error that the action's code threw while the platform read one of its objects, for example in a getter; or an abort reason. */
  class RealmError {
    constructor(readonly index: number) {}
  }

  /** When the platform reads a property of the returned proxy, the proxy reads it in the realm. */
  function proxyOf(isCallable: boolean, perform: RealmObjectOperation, readRow: ReadRow): object {
    const callRealm = (operation: string, argument?: unknown): Any => {
      let result: Any;
      const receive = (...row: Any[]) => {
        result = row;
      };
      perform(operation, receive, argument);
      return readRow(result)[0];
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

  function bytesOf(kind: string, base64: string, maxByteLength: number | undefined, isDetached: boolean): Any {
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

  function rowOfView(view: Any): Any[] {
    const memory = new Uint8Array(view.buffer, view.byteOffset, view.byteLength) as Any;
    return ["b", view[Symbol.toStringTag], memory.toBase64()];
  }

  return { RealmError, proxyOf, bytesOf, rowOfView };
}
