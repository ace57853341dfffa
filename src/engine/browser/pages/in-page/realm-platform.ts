/** Defines the web platform in a ShadowRealm: classes such as `Request`, which use objects of the worker (host-platform.ts). */
import type { Any } from "./any.js";
import type { PlatformMember, UsePlatform, WorkerPlatformClass } from "./host-platform.js";
import type { CreateRowCodec, Row } from "./rows.js";

interface PlatformCall {
  __proto__: null;
  convert?: ((value: Any, trace: Any) => unknown) | undefined;
  /** Function that the action called. Its frame and all frames above it are removed from the stack of an error. */
  caller: object;
  /** Stack of the call, if it has already returned. */
  trace?: Any;
}

export type InstallRealmPlatform = ReturnType<typeof createRealmPlatformInstaller>;

/** The browser evaluates this function's source text. The function stores the globals it uses, because the action may replace them. */
export function createRealmPlatformInstaller(createRowCodec: CreateRowCodec) {
  const scope = globalThis as Any;
  const { apply, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, ownKeys, setPrototypeOf } = Reflect;
  const { captureStackTrace } = Error as Any;
  const { create, prototype: ObjectPrototype } = Object;
  const { parse, stringify } = JSON;
  const { asyncIterator, iterator, toStringTag } = Symbol;
  const OriginalPromise = Promise;
  const OriginalDate = Date;
  const OriginalTypeError = TypeError;
  const OriginalSyntaxError = SyntaxError;
  const OriginalWeakMap = WeakMap;
  const { get: getFromWeakMap, set: setInWeakMap } = OriginalWeakMap.prototype;
  const { indexOf, slice } = String.prototype;
  const { DOMException, QuotaExceededError, URLSearchParams } = scope;
  const errorClasses: Any = { __proto__: null, TypeError, RangeError, SyntaxError, QuotaExceededError };
  const { toString: stringifySearchParams } = URLSearchParams.prototype;
  const readByteLength: Any = getOwnPropertyDescriptor(ArrayBuffer.prototype, "byteLength")!.get;
  const prototypes: Any = {
    ...{ __proto__: null, Iterator: scope.Iterator.prototype },
    AsyncIterator: getPrototypeOf(getPrototypeOf(async function* () {}.prototype)!),
  };
  const constructors: Any = { __proto__: null };
  const classes: Any = { __proto__: null };
  /** Keeps each object that an attribute has returned, so that properties which the action adds to it are not lost. */
  const attributes = new OriginalWeakMap<object, Any>();
  let usePlatform: UsePlatform = () => {};
  const DEFAULT_CALL = { __proto__: null, caller: callPlatform } as PlatformCall;
  /** Last result of the operation `keys`. The worker gets a copy of this list, but only a handle of any other array. */
  let listedKeys: unknown = null;
  /** Operations that the worker performs on objects of the realm. For `call`, the row starts with the value of `this`. */
  const objectOperations: Any = {
    __proto__: null,
    get: (value: Any, row: Row) => value[row[0]],
    has: (value: Any, row: Row) => row[0] in value,
    keys(value: Any) {
      listedKeys = ownKeys(value);
      return listedKeys;
    },
    enumerable: (value: Any, row: Row) => getOwnPropertyDescriptor(value, row[0])?.enumerable,
    call(value: Any, row: Row) {
      const values: Any[] = [];
      for (let at = 1; at < row.length; at += 1) codec.append(values, row[at]);
      return apply(value, row[0], values);
    },
  };

  /** True if `method` accepts the value as `this`, so that the value is an object of the method's class. */
  function isAcceptedBy(method: Any, value: Any): boolean {
    try {
      apply(method, value, []);
      return true;
    } catch {
      return false;
    }
  }

  const codec = createRowCodec({
    isBuffer: (value) => isAcceptedBy(readByteLength, value),
    ownsBuffers: true,
    appendCopy(row, value) {
      if (value === listedKeys) {
        codec.append(row, "list", value.length);
        codec.encode(value, row);
      } else if (isAcceptedBy(stringifySearchParams, value))
        codec.appendSnapshot(row, value, apply(stringifySearchParams, value, []));
      else return false;
      return true;
    },
    readCopy(kind, next, read) {
      if (kind === "scope") return scope;
      if (kind === "date") return new OriginalDate(next());
      const record = {};
      for (let left = next(); left > 0; left -= 1) codec.define(record, next(), read());
      return record;
    },
    describe: (value) => typeof value === "function",
    perform(value, operation, receive, row) {
      const work = () => objectOperations[operation](value, codec.decode(row));
      apply(receive, undefined, codec.encodeOutcome(work));
    },
    wrap(description, _handle, call: PlatformCall = DEFAULT_CALL) {
      if (description[0] === "[") return createError(description, call);
      const object = create(getPrototype(description));
      defineMembers(object, `${description}.`, classes[description].ownMembers, createMethod);
      return object;
    },
  });

  /** For an error after the call has returned: sets the error's stack to frames that were recorded during the call. */
  function setStackFrames(error: Any, kind: string, stack: unknown): void {
    if (typeof stack !== "string") return;
    const frames = apply(slice, stack, [apply(indexOf, `${stack}\n`, ["\n"])]);
    define(error, "stack", `${kind}: ${error.message}${frames}`, false);
  }

  /** Creates an error of the platform in the realm, with the stack of the realm's code. */
  function createError(description: string, { caller, trace }: PlatformCall): object {
    const { 0: kind, 1: message, 2: name, 3: hasStack } = parse(description);
    const isDomException = kind === "DOMException";
    const error = isDomException
      ? new DOMException(message, name)
      : new (errorClasses[kind] ?? OriginalTypeError)(message);
    if (!hasStack) return error;
    if (trace === undefined) captureStackTrace(error, caller);
    else setStackFrames(error, isDomException ? name : kind, trace.stack);
    return error;
  }

  /** Parses the text of a response body as JSON. @throws SyntaxError with the stack of `trace` */
  function parseJson(text: string, trace: Any): unknown {
    try {
      return parse(text);
    } catch (error) {
      const fault = new OriginalSyntaxError((error as Error).message);
      setStackFrames(fault, "SyntaxError", trace?.stack);
      throw fault;
    }
  }

  /** Performs an operation of the worker. Returns its result, or a promise of it; throws if the worker reports an error. */
  function callPlatform(
    operation: string,
    row: Row = [],
    caller: object = callPlatform,
    convert?: PlatformCall["convert"],
  ): Any {
    const call = { __proto__: null, caller } as PlatformCall;
    let value: unknown;
    let fault: { error: unknown } | null = null;
    let pendingPromise: Any = null;
    const settle = (answer: Row) => {
      try {
        const result = codec.decode(answer, call)[0];
        value = convert === undefined ? result : convert(result, call.trace);
        if (pendingPromise !== null) pendingPromise.resolve(value);
      } catch (error) {
        if (pendingPromise === null) fault = { error };
        else pendingPromise.reject(error);
      }
    };
    const receive = (...answer: Any[]) => {
      if (answer[0] !== "promise") return settle(answer);
      call.trace = { __proto__: null };
      captureStackTrace(call.trace, caller);
      value = new OriginalPromise((resolve, reject) => {
        pendingPromise = { resolve, reject };
      });
    };
    const message: Any[] = [operation, receive];
    for (let at = 0; at < row.length; at += 1) codec.append(message, row[at]);
    apply(usePlatform, undefined, message);
    if (fault !== null) throw (fault as { error: unknown }).error;
    return value;
  }

  function define(holder: object, key: PropertyKey, value: unknown, enumerable: boolean): void {
    defineProperty(holder, key, { __proto__: null, value, configurable: true, enumerable, writable: true } as Any);
  }

  /** Returns a function with the name `key`. Each call passes the function itself, `this` and the parameters to `work`. */
  function createFunction(
    key: string,
    length: number,
    work: (caller: object, target: unknown, values: Any[]) => Any,
  ): Any {
    const { [key]: method } = {
      [key](this: unknown, ...values: Any[]): unknown {
        return work(method!, this, values);
      },
    };
    defineProperty(method!, "length", { __proto__: null, value: length } as Any);
    return method;
  }

  function createMethod(operation: string, key: string, length: number): Any {
    return createFunction(key, length, (caller, target, values) => {
      let convert: PlatformCall["convert"];
      if (key === "json") convert = parseJson;
      if (key === "getRandomValues") convert = (bytes) => codec.writeBytes(values[0], bytes);
      return callPlatform(operation, codec.encode(values, codec.encode([target])), caller, convert);
    });
  }

  function createStaticMethod(operation: string, key: string, length: number): Any {
    return createFunction(key, length, (caller, _target, values) => {
      // The worker parses this JSON text. `stringify` returns undefined for a value without JSON, and the browser then throws.
      if (key === "json" && values.length > 0) values[0] = stringify(values[0]);
      return callPlatform(operation, codec.encode(values), caller);
    });
  }

  function createAttribute(operation: string, key: string, isWritable: boolean): PropertyDescriptor {
    const holder = {
      get [key](): unknown {
        const value = callPlatform(operation, codec.encode([this]));
        if (!codec.isWrapper(value)) return value;
        const storedValues = apply(getFromWeakMap, attributes, [this]) ?? { __proto__: null };
        storedValues[key] = value;
        apply(setInWeakMap, attributes, [this, storedValues]);
        return value;
      },
      set [key](value: unknown) {
        callPlatform(`${operation}=`, codec.encode([this, value]));
      },
    };
    const { get, set } = getOwnPropertyDescriptor(holder, key)!;
    return { get: get!, set: isWritable ? set! : undefined } as PropertyDescriptor;
  }

  function defineMembers(
    holder: object,
    prefix: string,
    members: readonly PlatformMember[],
    createMemberMethod: typeof createMethod,
    realmClass?: object | null,
  ): void {
    for (let at = 0; at < members.length; at += 1) {
      const { 0: key, 1: kind, 2: detail } = members[at]!;
      const operation = `${prefix}${key}`;
      if (kind === "constructor") define(holder, key, realmClass, false);
      else if (kind === "method") define(holder, key, createMemberMethod(operation, key, detail), true);
      else {
        const description =
          kind === "constant" ? { value: detail } : createAttribute(operation, key, kind === "accessor");
        const configurable = kind !== "constant";
        defineProperty(holder, key, { __proto__: null, ...description, configurable, enumerable: true } as Any);
      }
    }
  }

  const describeMissingNew = (name: string): string =>
    `Failed to construct '${name}': Please use the 'new' operator, this DOM object constructor cannot be called as a function.`;

  function createConstructor({ name, isGlobal }: WorkerPlatformClass): Any {
    const realmClass: Any = {
      [name]: function (this: unknown, ...values: Any[]) {
        if (new.target === undefined)
          throw new OriginalTypeError(isGlobal ? describeMissingNew(name) : "Illegal constructor");
        const object = callPlatform(`new ${name}`, codec.encode(values), realmClass) as object;
        const { prototype } = new.target;
        setPrototypeOf(object, codec.isObject(prototype) ? prototype : ObjectPrototype);
        return object;
      },
    }[name];
    return realmClass;
  }

  /** Returns the prototype of a class. Defines the class at its first use, because most runs need few classes. */
  function getPrototype(name: string): Any {
    if (prototypes[name] === undefined) defineClass(classes[name]);
    return prototypes[name];
  }

  function defineClass(hostClass: WorkerPlatformClass): void {
    const { name, parent, length, members, staticMembers, iteration } = hostClass;
    const prototype = create(parent === null ? ObjectPrototype : getPrototype(parent));
    prototypes[name] = prototype;
    const realmClass = length === null ? null : createConstructor(hostClass);
    constructors[name] = realmClass;
    defineMembers(prototype, `${name}.`, members, createMethod, realmClass);
    defineProperty(prototype, toStringTag, { __proto__: null, value: name, configurable: true } as Any);
    if (iteration === "entries") define(prototype, iterator, prototype.entries, false);
    if (iteration === "values") define(prototype, asyncIterator, prototype.values, false);
    if (realmClass === null) return;
    defineProperty(realmClass, "prototype", { __proto__: null, value: prototype, writable: false } as Any);
    defineProperty(realmClass, "length", { __proto__: null, value: length } as Any);
    defineMembers(realmClass, `${name}:`, staticMembers, createStaticMethod);
    if (parent !== null) setPrototypeOf(realmClass, constructors[parent]);
  }

  /** Defines a global whose value is created at the first use. */
  function defineLazily(name: string, enumerable: boolean, create: () => unknown): void {
    let value: unknown;
    const get = () => {
      value ??= create();
      return value;
    };
    const set = (replacement: unknown) => define(scope, name, replacement, enumerable);
    defineProperty(scope, name, { __proto__: null, get, set, configurable: true, enumerable } as Any);
  }

  function createClock(): object {
    const prototype = {
      now: () => callPlatform("now"),
      get timeOrigin() {
        return callPlatform("timeOrigin");
      },
    };
    defineProperty(prototype, toStringTag, { __proto__: null, value: "Performance", configurable: true } as Any);
    return create(prototype);
  }

  /** Calls `work` in a microtask of the realm, because a microtask of the worker takes 25 to 65 µs. */
  async function runInMicrotask(work: Any): Promise<void> {
    await undefined;
    try {
      apply(work, undefined, []);
    } catch {
      // Ignores errors of the callback, as a worker does. The browser would store a rejected promise, its error and its stack.
    }
  }

  function defineFunction(name: string, length: number): void {
    const call = createFunction(name, length, (caller, target, values) => {
      if (name !== "fetch" && target !== undefined && target !== null && target !== scope)
        throw new OriginalTypeError("Illegal invocation");
      if (name === "queueMicrotask" && typeof values[0] === "function") return void runInMicrotask(values[0]);
      return callPlatform(name, codec.encode(values), caller);
    });
    define(scope, name, call, true);
  }

  return (useHostPlatform: UsePlatform, descriptionJson: string): void => {
    usePlatform = useHostPlatform;
    for (const hostClass of parse(descriptionJson) as WorkerPlatformClass[]) {
      const { name, isGlobal } = hostClass;
      classes[name] = hostClass;
      if (isGlobal) defineLazily(name, false, () => getPrototype(name) && constructors[name]);
    }
    for (const name of ["fetch", "queueMicrotask", "setTimeout", "setInterval"]) defineFunction(name, 1);
    for (const name of ["clearTimeout", "clearInterval"]) defineFunction(name, 0);
    defineLazily("crypto", true, () => callPlatform("crypto"));
    defineLazily("performance", true, createClock);
  };
}
