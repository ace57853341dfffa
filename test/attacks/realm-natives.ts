/**
 * Calls the native functions of a realm, which is the global scope of an isolate. The tests send this function to the browser as source
 * text.
 */

// biome-ignore lint/suspicious/noExplicitAny: browser globals have no types here
type Any = any;

/**
 * Calls `count` of the platform's functions, beginning with the function at index `from`, on many objects and with many arguments.
 * @returns number of calls; the paths of all functions if `from` is null
 */
export async function tryNatives(url: string, from: number | null, count: number): Promise<string[] | number> {
  const { apply, construct, ownKeys, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
  const scope = globalThis as Any;
  const LANGUAGE =
    /^(Object|Function|Array|Number|Boolean|String|Symbol|Date|RegExp|\w*Error|JSON|Math|Intl|Temporal|\w*Array|ArrayBuffer|Atomics|DataView|Map|BigInt|Set|Iterator|Weak\w+|Proxy|Reflect|\w*DisposableStack|parse\w+|is\w+|\w*codeURI\w*|\w*escape|eval|globalThis|console)$/;
  const isObject = (value: Any) => (typeof value === "object" && value !== null) || typeof value === "function";
  const throwError = () => {
    throw new Error("boom");
  };
  const bomb: Any = new Proxy(class {}, {
    get: throwError,
    has: throwError,
    getPrototypeOf: throwError,
    ownKeys: throwError,
    apply: throwError,
    construct: throwError,
  });
  const HOOKS = [
    "start",
    "pull",
    "write",
    "transform",
    "flush",
    "cancel",
    "abort",
    "close",
    "size",
    "handleEvent",
    "then",
    "toString",
    "valueOf",
  ];
  const hooks = (hook: Any, names: readonly PropertyKey[] = [...HOOKS, Symbol.iterator, Symbol.asyncIterator]): Any =>
    Object.fromEntries(names.map((name) => [name, hook]));
  /** Returns a stream's source or sink whose methods throw. It has no `start`, so that the stream can start. */
  const createBrokenSource = (): Any => hooks(throwError, HOOKS.slice(1, 9));

  /** Returns objects of the platform's classes. */
  function createPlatformObjects(): Any[] {
    const made: Any[] = [];
    const addObject = (make: () => unknown) => {
      try {
        const value = make();
        if (value instanceof Promise) value.catch(() => {});
        if (isObject(value)) made.push(value);
      } catch {}
    };
    for (const name of ownKeys(scope) as string[]) {
      const globalClass = scope[name];
      if (LANGUAGE.test(name) || typeof globalClass !== "function" || !globalClass.prototype) continue;
      for (const values of [[], ["a"], ["http://a.b/"], ["gzip"], [["a"], "b"]])
        addObject(() => construct(globalClass, values));
    }
    addObject(() => new Response("a").body);
    addObject(() => new Response("a").body!.getReader());
    addObject(() => (new Response("a").body as Any)[Symbol.asyncIterator]());
    addObject(() => new Headers([["a", "b"]]).entries());
    addObject(() => new URLSearchParams("a=b").entries());
    addObject(() => {
      const controller = new AbortController();
      controller.signal.addEventListener("abort", (event) => made.push(event));
      controller.abort();
      return controller.signal;
    });
    addObject(() => {
      const controller = new AbortController();
      made.push(controller);
      return controller.signal;
    });
    addObject(() => new (getPrototypeOf(AbortSignal) as Any)());
    return made;
  }

  function findFunctions(objects: readonly Any[]): [string, Any][] {
    const found: [string, Any][] = [];
    const walked = new Set<unknown>([Function.prototype, Object.prototype, Object, Function, scope]);
    function visit(path: string, value: Any, depth: number): void {
      if (!isObject(value) || walked.has(value) || depth > 5) return;
      walked.add(value);
      if (typeof value === "function") found.push([path, value]);
      for (const key of ownKeys(value)) {
        const { get, set, value: held } = getOwnPropertyDescriptor(value, key)!;
        const name = `${path}.${String(key)}`;
        visit(`${name}(get)`, get, depth + 1);
        visit(`${name}(set)`, set, depth + 1);
        visit(name, held, depth + 1);
      }
      visit(`${path}.__proto__`, getPrototypeOf(value), depth + 1);
    }
    for (const name of ownKeys(scope) as string[])
      if (LANGUAGE.test(name)) walked.add(scope[name]).add(scope[name]?.prototype);
    for (const name of ownKeys(scope) as string[]) visit(name, scope[name], 0);
    for (const [at, object] of objects.entries()) visit(`${at}`, object, 0);
    return found;
  }

  const VALUES: (() => Any[])[] = [
    () => [],
    ...[undefined, null, 0, -1, 1e12, "a", "abort", "gzip", Symbol("s"), 10n, {}, [], throwError, bomb].map(
      (value) => () => [value],
    ),
    () => [hooks(throwError)],
    () => ["abort", throwError],
    () => ["abort", { handleEvent: throwError }],
    () => ["abort", bomb],
    () => ["abort", throwError, { once: true, signal: AbortSignal.abort() }],
    () => ["abort", throwError, bomb],
    () => [createBrokenSource(), { size: throwError, highWaterMark: 1 }],
    () => [{ type: "bytes", ...createBrokenSource() }],
    () => ["throw 1", 0],
    () => [throwError, 1, throwError],
    () => [new Uint8Array(4)],
    () => [new Uint8Array(4), { min: 2 }],
    () => [(new ArrayBuffer(4) as Any).transfer(0)],
    () => [new Uint8Array(new (ArrayBuffer as Any)(4, { maxByteLength: 8 }))],
    () => [new Response("a").body],
    () => [{ readable: new Response("a").body, writable: createBrokenSource() }],
    () => [createBrokenSource(), { signal: AbortSignal.abort(bomb) }],
    () => [{ mode: "byob" }],
    () => [{ [Symbol.asyncIterator]: () => ({ next: throwError, return: throwError }) }],
    () => [[bomb]],
    () => [[["a", throwError]]],
    () => [[AbortSignal.abort(), new AbortController().signal]],
    () => [new Response("a")],
    () => [url, { method: "POST", body: "x" }],
    () => [url, { method: "POST", duplex: "half", body: new Response("a").body }],
    () => [url, { signal: AbortSignal.abort(bomb) }],
  ];

  function has(object: Any, work: Any): boolean {
    try {
      for (let holder = object; holder !== null; holder = getPrototypeOf(holder)) {
        for (const key of ownKeys(holder)) {
          const { get, set, value } = getOwnPropertyDescriptor(holder, key)!;
          if ([get, set, value].includes(work)) return true;
        }
      }
    } catch {}
    return false;
  }

  let calls = 0;
  const callQuietly = (work: () => unknown) => {
    calls += 1;
    try {
      const value = work();
      if (value instanceof Promise) value.catch(() => {});
    } catch {}
  };
  const found = findFunctions(createPlatformObjects());
  if (from === null) return found.map(([path]) => path);
  for (const [, work] of found.slice(from, from + count)) {
    const objects = createPlatformObjects();
    for (const make of VALUES) callQuietly(() => apply(work, undefined, make()));
    for (const make of VALUES) callQuietly(() => construct(work, make()));
    for (const [at, object] of objects.entries()) {
      const values = has(object, work) ? VALUES : VALUES.filter((_, valueIndex) => valueIndex % 16 === at % 16);
      for (const make of values) callQuietly(() => apply(work, object, make()));
    }
    // Runs the listeners and timers that the calls may have registered: sends events, and waits 1 ms.
    const { constructor: OwnEvent } = objects.find((object) => "isTrusted" in object);
    for (const object of objects) {
      if (object instanceof AbortController) callQuietly(() => object.abort());
      if (typeof object.dispatchEvent === "function") callQuietly(() => object.dispatchEvent(new OwnEvent("abort")));
    }
    await new Promise((resolve) => {
      setTimeout(resolve, 1);
    });
  }
  return calls;
}
