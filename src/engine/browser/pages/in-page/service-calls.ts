/**
 * How requests of a run's library to the service leave its worker by the page's binding, and how their answers come back. Runs inside the
 * browser: one half in the page, where no author's code does, the other in the worker, where it does.
 */

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;

export type HostCalls = ReturnType<typeof hostCalls>;
export type WorkerCalls = ReturnType<typeof workerCalls>;

/** As `harnessCore`: evaluated by its source text, in the page. So many calls are under way at once, the others wait here. */
export function hostCalls(atOnceMax: number) {
  const open = new Map<number, { port: Any; own: unknown }>();
  let waiting: { port: Any; own: unknown; text: string }[] = [];
  let next = 0;
  let count = 0;
  let tell: (text: string) => void = () => {};

  function start(): void {
    for (; open.size < atOnceMax && next < waiting.length; next += 1) {
      const { port, own, text } = waiting[next]!;
      count += 1;
      open.set(count, { port, own });
      tell(`${count}:${text}`);
    }
    if (next < waiting.length) return;
    waiting = [];
    next = 0;
  }

  return {
    listen(binding: (text: string) => void): void {
      tell = binding;
    },
    /** A worker's call: its own number for it, and the request's text. */
    take(port: Any, [own, text]: [unknown, string]): void {
      waiting.push({ port, own, text });
      start();
    },
    answer(id: number, head: unknown, text: string | null, last: boolean): void {
      const call = open.get(id);
      if (call === undefined) return;
      call.port.postMessage([call.own, head, text, last]);
      if (!last) return;
      open.delete(id);
      start();
    },
    /** What is under way and what waits is nobody's from here on. */
    drop(): void {
      open.clear();
      waiting = [];
      next = 0;
    },
  };
}

/**
 * As `harnessCore`: evaluated by its source text, in the worker, before the author's code, which may replace whatever this does not take
 * here. `call` answers null for what is too long.
 */
export function workerCalls(bodyMax: number, callMax: number) {
  const OwnPromise = Promise;
  const OwnError = TypeError;
  const { stringify } = JSON;
  const open: Any = { __proto__: null };
  let count = 0;
  let post: ((message: Any) => void) | null = null;

  const fault = () => new OwnError("Failed to fetch");

  /** One answer as it comes. */
  function createAnswer(resolve: (answer: Any) => void, reject: (error: unknown) => void) {
    let said = "";
    let state = 0;
    let settle: (() => void) | null = null;
    const text = () =>
      new OwnPromise<string>((whole, broken) => {
        settle = () => (state === 1 ? whole(said) : broken(fault()));
        if (state !== 0) settle();
      });
    return (head: Any, part: string | null, last: boolean): void => {
      if (head !== null) resolve({ __proto__: null, status: head[0], headers: head[1], text });
      else if (part === null) reject(fault());
      if (part !== null) said += part;
      if (!last) return;
      state = part === null ? 2 : 1;
      if (settle !== null) settle();
    };
  }

  return {
    __proto__: null,
    /** From here on calls leave by `send`; null: none does. */
    open(send: ((message: Any) => void) | null): void {
      post = send;
    },
    take(message: Any): void {
      const own = message[0];
      const answer = open[own];
      if (answer === undefined) return;
      if (message[3]) delete open[own];
      answer(message[1], message[2], message[3]);
    },
    call(method: string, url: string, headers: Any, body: string | null): Promise<Any> | null {
      if (body !== null && body.length > bodyMax) return null;
      const text = stringify([method, url, headers, body]);
      if (text.length > callMax) return null;
      return new OwnPromise((resolve, reject) => {
        if (post === null) return reject(fault());
        count += 1;
        open[count] = createAnswer(resolve, reject);
        post([count, text]);
      });
    },
  };
}
