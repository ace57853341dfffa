/**
 * Sends requests of a run's library to the service by a binding, and receives their answers. `hostCalls` runs where no code of actions runs (in
 * the thread of an isolate, or in the harness of a document), `runCalls` in the global scope of the run.
 */

// biome-ignore lint/suspicious/noExplicitAny: globals of the browser have no types here
type Any = any;

export type HostCalls = ReturnType<typeof hostCalls>;
export type RunCalls = ReturnType<typeof runCalls>;

/** Receives a part of an answer. The first one has the head, the JSON of status and headers. A text of null: no answer, or no rest of it. */
type Hear = (head: string | null, text: string | null, last: boolean) => void;

/** Calls of one kind: at most `max` are active, the others wait. */
interface CallQueue {
  readonly max: number;
  busy: number;
  waiting: { hear: Hear; text: string }[];
  next: number;
}

/**
 * As `harnessCore`: evaluated by its source text, outside the run.
 * @param atOnceMax maximum active requests to the service
 * @param outgoingMax maximum active requests to other services, whose texts start with `outgoing`
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
    /** Sends a request. */
    take(hear: Hear, text: string): void {
      const queue = text.startsWith("outgoing ") ? outgoing : calls;
      queue.waiting.push({ hear, text });
      start(queue);
    },
    answer(id: number, head: string | null, text: string | null, last: boolean): void {
      const call = open.get(id);
      if (call === undefined) return;
      // Not called as a method: an object as `this` cannot cross the border of a realm.
      const { hear } = call;
      hear(head, text, last);
      if (!last) return;
      open.delete(id);
      call.queue.busy -= 1;
      start(call.queue);
    },
    /** Forgets all active and waiting requests. */
    drop(): void {
      open.clear();
      calls = queueOf(atOnceMax);
      outgoing = queueOf(outgoingMax);
    },
  };
}

/**
 * As `harnessCore`: evaluated by its source text, in the run's global scope. Stores all globals that it uses later, since the
 * action may replace them. `call` returns null for a request that is too long.
 */
export function runCalls(bodyMax: number, callMax: number) {
  const OwnPromise = Promise;
  const OwnError = TypeError;
  const { parse, stringify } = JSON;
  const open: Any = { __proto__: null };
  let count = 0;
  let post: ((own: number, text: string) => void) | null = null;

  const fault = () => new OwnError("Failed to fetch");

  /** Receives the parts of one answer. */
  function createAnswer(resolve: (answer: Any) => void, reject: (error: unknown) => void) {
    let said = "";
    let state = 0;
    let settle: (() => void) | null = null;
    const text = () =>
      new OwnPromise<string>((whole, broken) => {
        settle = () => {
          if (state !== 0) state === 1 ? whole(said) : broken(fault());
        };
        settle();
      });
    /** The text that has arrived since the last call; waits for some. null at the end. */
    const next = () =>
      new OwnPromise<string | null>((arrived, broken) => {
        settle = () => {
          const part = said;
          if (part === "" && state === 0) return;
          settle = null;
          said = "";
          if (part !== "") arrived(part);
          else state === 1 ? arrived(null) : broken(fault());
        };
        settle();
      });
    return (head: string | null, part: string | null, last: boolean): void => {
      if (head !== null) {
        const said = parse(head);
        resolve({ __proto__: null, status: said[0], headers: said[1], head: said, text, next });
      } else if (part === null) reject(fault());
      if (part !== null) said += part;
      if (last) state = part === null ? 2 : 1;
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
    /** Sets the function that sends requests; null: none can be sent. */
    open(send: ((own: number, text: string) => void) | null): void {
      post = send;
    },
    /** Receives a part of the answer to the request of that number. */
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
