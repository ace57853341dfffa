/**
 * How requests of a run's library to the service leave its worker or its realm by a binding, and how their answers come back. Runs inside the
 * browser: one half where no author's code does, in the page or the realms' thread, the other where it does.
 */

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;

export type HostCalls = ReturnType<typeof hostCalls>;
export type RunCalls = ReturnType<typeof runCalls>;

/** Hears a part of an answer, the first with its head, the JSON of status and headers. Without a text there is none, or no more of it. */
type Hear = (head: string | null, text: string | null, last: boolean) => void;

/** As `harnessCore`: evaluated by its source text, outside the run. So many calls are under way at once, the others wait here. */
export function hostCalls(atOnceMax: number) {
  const open = new Map<number, Hear>();
  let waiting: { hear: Hear; text: string }[] = [];
  let next = 0;
  let count = 0;
  let tell: (text: string) => void = () => {};

  function start(): void {
    for (; open.size < atOnceMax && next < waiting.length; next += 1) {
      const { hear, text } = waiting[next]!;
      count += 1;
      open.set(count, hear);
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
    /** A call, by the request's text. */
    take(hear: Hear, text: string): void {
      waiting.push({ hear, text });
      start();
    },
    answer(id: number, head: string | null, text: string | null, last: boolean): void {
      const hear = open.get(id);
      if (hear === undefined) return;
      hear(head, text, last);
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
 * As `harnessCore`: evaluated by its source text, in the run's scope, before the author's code, which may replace whatever this does not take
 * here. `call` answers null for what is too long.
 */
export function runCalls(bodyMax: number, callMax: number) {
  const OwnPromise = Promise;
  const OwnError = TypeError;
  const { parse, stringify } = JSON;
  const open: Any = { __proto__: null };
  let count = 0;
  let post: ((own: number, text: string) => void) | null = null;

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
    return (head: string | null, part: string | null, last: boolean): void => {
      if (head !== null) {
        const said = parse(head);
        resolve({ __proto__: null, status: said[0], headers: said[1], text });
      } else if (part === null) reject(fault());
      if (part !== null) said += part;
      if (!last) return;
      state = part === null ? 2 : 1;
      if (settle !== null) settle();
    };
  }

  return {
    __proto__: null,
    /** From here on calls leave by `send`; null: none does. */
    open(send: ((own: number, text: string) => void) | null): void {
      post = send;
    },
    /** Of the answer to the call of that number. */
    take(own: number, head: string | null, text: string | null, last: boolean): void {
      const answer = open[own];
      if (answer === undefined) return;
      if (last) delete open[own];
      answer(head, text, last);
    },
    call(method: string, url: string, headers: Any, body: string | null): Promise<Any> | null {
      if (body !== null && body.length > bodyMax) return null;
      const text = stringify([method, url, headers, body]);
      if (text.length > callMax) return null;
      return new OwnPromise((resolve, reject) => {
        if (post === null) return reject(fault());
        count += 1;
        open[count] = createAnswer(resolve, reject);
        post(count, text);
      });
    },
  };
}
