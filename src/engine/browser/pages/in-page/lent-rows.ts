/**
 * Stands for what a realm's code has given to a borrowed function, so that the platform itself converts it. Runs inside the browser, in the
 * worker, where no author's code does.
 */

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;
declare const self: Any;

/** Hears a row of words. */
export type Give = (...row: Any[]) => unknown;

/** What does with an object of the author's whatever the platform does as it converts one. */
export type Foreign = (verb: string, give: Give, given?: Any) => unknown;

/** Answers a row's values. */
type ReadRow = (row: readonly Any[]) => Any[];

export type LentRows = ReturnType<typeof lentRows>;

/** As `harnessCore`: evaluated by its source text. */
export function lentRows() {
  /** What the author's code has thrown while the platform asked it, as it goes through the platform. */
  class Thrown {
    constructor(readonly place: number) {}
  }

  /** What does with an object of the realm's what is asked of it. */
  function asking(ask: Foreign, readRow: ReadRow): (verb: string, given?: unknown) => Any {
    return (verb, given) => {
      let value: Any;
      const give = (...row: Any[]) => {
        value = row;
      };
      ask(verb, give, given);
      return readRow(value)[0];
    };
  }

  function revokedProxy(target: object): object {
    const { proxy, revoke } = Proxy.revocable(target, {});
    revoke();
    return proxy;
  }

  /** Stands for an object of the realm's, so that the platform itself converts it: by its own order, and with its own words for what is wrong. */
  function foreignObject(isCallable: boolean, ask: Foreign | null, readRow: ReadRow): object {
    const target = isCallable ? () => {} : {};
    if (ask === null) return revokedProxy(target);
    const hear = asking(ask, readRow);
    return new Proxy(target, {
      get: (_, key) => hear("get", key),
      has: (_, key) => hear("has", key),
      ownKeys: () => hear("keys"),
      getOwnPropertyDescriptor(_, key) {
        const enumerable = hear("own", key);
        return enumerable === undefined ? undefined : { value: undefined, configurable: true, enumerable };
      },
      apply: (_target, _self, [given]) => hear("call", given),
    });
  }

  /** Made JSON of as late as the platform does it. */
  function foreignJson(ask: Foreign, readRow: ReadRow): object {
    const hear = asking(ask, readRow);
    return {
      toJSON() {
        const text = hear("json");
        return text === undefined ? undefined : JSON.parse(text);
      },
    };
  }

  function bytesOf(kind: string, base64: string, maxByteLength: number | undefined, isGone: boolean): Any {
    const bytes = (Uint8Array as Any).fromBase64(base64);
    let { buffer } = bytes;
    if (maxByteLength !== undefined) {
      buffer = new (ArrayBuffer as Any)(bytes.length, { maxByteLength });
      new Uint8Array(buffer).set(bytes);
    }
    const value = kind === "ArrayBuffer" ? buffer : new self[kind](buffer);
    if (isGone) buffer.transfer();
    return value;
  }

  function rowOfView(view: Any): Any[] {
    const memory = new Uint8Array(view.buffer, view.byteOffset, view.byteLength) as Any;
    return ["b", view[Symbol.toStringTag], memory.toBase64()];
  }

  /** First words of the rows that a stream of the author's may give: bytes, primitives, objects of the platform, its end, and a failure. */
  const PARTS: readonly unknown[] = ["b", "v", "o", "l", "t"];

  /** @throws TypeError for a part that could not be read as the object that it is */
  function checkPart(kind: unknown): void {
    if (!PARTS.includes(kind)) throw new TypeError("a part of the stream must be bytes or a primitive (got an object)");
  }

  /** As the platform says it of a value that it cannot convert. */
  function converted<T>(asked: string, work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (error instanceof Thrown) throw error;
      throw new TypeError(`Failed to execute ${asked}: ${(error as Error).message}`);
    }
  }

  return { Thrown, foreignObject, foreignJson, bytesOf, rowOfView, checkPart, converted };
}
