/** Executes code samples and describes their results as text. The tests send the function `outcomes` to the browser as source text. */

// biome-ignore lint/suspicious/noExplicitAny: samples return values of any type, from browser globals without types here
type Any = any;

/** Title of a sample, and its code, which is an expression or a block that returns a value. */
export type Sample = readonly [title: string, code: string];

function outcomes() {
  const scope = globalThis as Any;
  const CLASSES = (
    "Response Headers File Blob FormData URL URLSearchParams DOMException TypeError RangeError SyntaxError ReferenceError Error Map Set Date Promise Array Function " +
    "ArrayBuffer Uint8Array DataView Object"
  ).split(" ");
  const RANDOM_TEXT =
    /(?<=WebKitFormBoundary)\w{16}|(?<=webkitformboundary)\w{16}|[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g;
  const show = (text: string) => text.replace(RANDOM_TEXT, "…");
  let log: string[] = [];

  const textOf = (bytes: Uint8Array) => {
    const characters = bytes.slice(0, 500).reduce((text, byte) => text + String.fromCharCode(byte), "");
    return [bytes.length, show(characters)];
  };

  const classOf = (value: Any): string => {
    const prototype = Object.getPrototypeOf(value);
    const name = CLASSES.find((className) => scope[className].prototype === prototype);
    return name ?? (prototype === null ? "null" : `${Object.prototype.toString.call(value)}`);
  };

  function describeError(error: Any): Any {
    const propertyNames = Reflect.ownKeys(error).map(String).sort().join();
    const classNames = CLASSES.filter((name) => error instanceof scope[name]).join();
    return [classNames, show(String(error.name)), show(String(error.message)), error.code, propertyNames];
  }

  async function read(value: Any, depth: number): Promise<Any> {
    const name = classOf(value);
    if (value instanceof Error || name === "DOMException") return describeError(value);
    if (name === "Response") {
      const { status, statusText, ok, type, redirected, url, bodyUsed } = value;
      const fields = [status, statusText, ok, type, redirected, show(url), bodyUsed];
      const isOpen = !bodyUsed && value.body !== null && !value.body.locked;
      const headers = [...value.headers].map(([key, text]) => `${key}: ${show(text)}`);
      return [fields, headers, isOpen ? await outcome(() => value.arrayBuffer(), depth) : value.body];
    }
    if (name === "Headers" || name === "URLSearchParams")
      return [...value].map(([key, text]) => `${key}: ${show(text)}`);
    if (name === "Blob") return [value.type, value.size, show(await value.text())];
    // Without a specified time, a file has the current time, which differs between runs.
    if (name === "File") {
      const age = Math.abs(Date.now() - value.lastModified) < 100_000 ? "now" : value.lastModified;
      return [value.name, age, value.type, value.size, show(await value.text())];
    }
    if (name === "FormData") return describe([...value], depth);
    if (name === "URL") return show(value.href);
    if (name === "Date") return value.getTime();
    if (name === "Function") return [value.name, value.length];
    if (name === "[object ReadableStream]") return value.locked;
    if (value instanceof ArrayBuffer) return value.detached ? "detached" : textOf(new Uint8Array(value));
    if (ArrayBuffer.isView(value)) return textOf(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
    if (depth > 5) return "deep";
    if (name === "Array") return await Promise.all(Array.from(value, (element) => describe(element, depth + 1)));
    const members: Any[] = [];
    for (const key of Reflect.ownKeys(value)) members.push([String(key), await describe(value[key], depth + 1)]);
    return members;
  }

  async function describe(value: Any, depth = 0): Promise<Any> {
    if (typeof value === "string")
      return value.length > 300 ? `${value.length} of ${value.slice(0, 100)}` : show(value).toWellFormed();
    if (Object.is(value, -0)) return "the number -0";
    if (value === null || typeof value === "boolean" || Number.isFinite(value)) return value;
    if (typeof value !== "object" && typeof value !== "function") return `${typeof value} ${String(value)}`;
    try {
      const name = classOf(value);
      return name === "Array" ? await read(value, depth) : [name, await read(value, depth)];
    } catch (error) {
      return ["unread", `${error}`];
    }
  }

  /** Executes a sample. Returns how it ended, and a description of its result or error. */
  async function outcome(work: () => unknown, depth = 0): Promise<Any> {
    const later = (value: unknown) => value instanceof Promise;
    try {
      const value = work();
      if (!later(value)) return ["returned", await describe(value, depth)];
      return await (value as Promise<unknown>).then(
        async (settled) => ["resolved", await describe(settled, depth)],
        async (error) => ["rejected", await describe(error, depth)],
      );
    } catch (error) {
      return ["thrown", await describe(error, depth)];
    }
  }

  /** Returns "never" if the promise does not settle within 30 s. */
  async function limitTime(received: Promise<unknown>): Promise<unknown> {
    let late: unknown;
    const timeout = new Promise((resolve) => {
      late = setTimeout(resolve, 30_000, "never");
    });
    const first = await Promise.race([received, timeout]);
    clearTimeout(late as number);
    return first;
  }

  return {
    describe,
    outcome,
    note: (text: unknown) => void log.push(String(text)),
    async all(samples: readonly [string, () => unknown][]): Promise<string[]> {
      const found: string[] = [];
      for (const [, work] of samples) {
        log = [];
        const received = await limitTime(outcome(work));
        found.push(JSON.stringify(log.length === 0 ? received : [received, log]));
      }
      return found;
    },
  };
}

/** Returns code whose function `execute` returns the results of the samples. `before` is code that runs before the samples. */
export function sourceOf(samples: readonly Sample[], before = ""): string {
  const functions = samples.map(([title, code]) => {
    const head = /\bawait\b/.test(code) ? "async () =>" : "() =>";
    return `[${JSON.stringify(title)}, ${head} ${code.startsWith("{") ? code : `(${code})`}],`;
  });
  const lines = [
    `const { note, outcome, describe, all } = (${outcomes})();`,
    before,
    "const samples = [",
    ...functions,
    "];",
  ];
  return [...lines, "const execute = () => all(samples);"].join("\n");
}
