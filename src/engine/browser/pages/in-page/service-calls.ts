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

/** Calls of one kind: so many are under way at once, the others wait. */
interface CallQueue {
  readonly max: number;
  busy: number;
  waiting: { hear: Hear; text: string }[];
  next: number;
}

/**
 * As `harnessCore`: evaluated by its source text, outside the run. `atOnceMax` and `outgoingMax`: calls of the service, and requests to other
 * services, whose texts begin with `outgoing`.
 */
export function hostCalls(atOnceMax: number, outgoingMax: number) {
  const open = new Map<number, { hear: Hear; queue: CallQueue }>();
  const queueOf = (max: number): CallQueue => ({ max, busy: 0, waiting: [], next: 0 });
  let calls = queueOf(atOnceMax);
  let outgoing = queueOf(outgoingMax);
  let count = 0;
  let tell: (text: string) => void = () => {};

  function start(queue: CallQueue): void {
    for (; queue.busy < queue.max && queue.next < queue.waiting.length; queue.next += 1) {
      const { hear, text } = queue.waiting[queue.next]!;
      count += 1;
      queue.busy += 1;
      open.set(count, { hear, queue });
      tell(`${count}:${text}`);
    }
    if (queue.next < queue.waiting.length) return;
    queue.waiting = [];
    queue.next = 0;
  }

  return {
    listen(binding: (text: string) => void): void {
      tell = binding;
    },
    /** A call, by the request's text. */
    take(hear: Hear, text: string): void {
      const queue = text.startsWith("outgoing ") ? outgoing : calls;
      queue.waiting.push({ hear, text });
      start(queue);
    },
    answer(id: number, head: string | null, text: string | null, last: boolean): void {
      const call = open.get(id);
      if (call === undefined) return;
      // Not as a method: an object as `this` cannot cross into a realm.
      const { hear } = call;
      hear(head, text, last);
      if (!last) return;
      open.delete(id);
      call.queue.busy -= 1;
      start(call.queue);
    },
    /** What is under way and what waits is nobody's from here on. */
    drop(): void {
      open.clear();
      calls = queueOf(atOnceMax);
      outgoing = queueOf(outgoingMax);
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
        resolve({ __proto__: null, status: said[0], headers: said[1], head: said, text });
      } else if (part === null) reject(fault());
      if (part !== null) said += part;
      if (!last) return;
      state = part === null ? 2 : 1;
      if (settle !== null) settle();
    };
  }

  function send(text: string): Promise<Any> {
    return new OwnPromise((resolve, reject) => {
      if (post === null) return reject(fault());
      count += 1;
      open[count] = createAnswer(resolve, reject);
      post(count, text);
    });
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
      return send(text);
    },
    /** Sends a request to another service, by the JSON of its options. */
    request: (options: string): Promise<Any> => send(`outgoing ${options}`),
  };
}
