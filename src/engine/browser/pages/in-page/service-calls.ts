/**
 * Sends requests of the library in a run to the service by a binding, and receives the responses. `hostCalls` runs
 * where no code of actions runs (the thread of an isolate, or the harness of a document), `runCalls` in the global
 * scope of the run.
 */

// biome-ignore lint/suspicious/noExplicitAny: globals of the browser have no types here
type Any = any;

export type HostCalls = ReturnType<typeof hostCalls>;
export type RunCalls = ReturnType<typeof runCalls>;

/**
 * Receives a part of a response. The first part has the head: the JSON of status and headers. A null text means that there is no response,
 * or that the rest is missing.
 */
type ReceivePart = (head: string | null, text: string | null, last: boolean) => void;

/** Requests of one kind: at most `max` are in progress, the others wait. */
interface CallQueue {
  readonly max: number;
  busy: number;
  waiting: { id: number; receivePart: ReceivePart; text: string }[];
  next: number;
}

/**
 * Creates the calls of one scope. Evaluated by its source text, like `harnessCore`, outside of the run.
 * @param atOnceMax maximum active requests to the service
 * @param outgoingMax maximum active requests to other services, whose texts start with `outgoing`
 */
export function hostCalls(atOnceMax: number, outgoingMax: number) {
  const active = new Map<number, { receivePart: ReceivePart; queue: CallQueue }>();
  const queueOf = (max: number): CallQueue => ({ max, busy: 0, waiting: [], next: 0 });
  let calls = queueOf(atOnceMax);
  let outgoing = queueOf(outgoingMax);
  let count = 0;
  let sendToService: (text: string) => void = () => {};

  function start(queue: CallQueue): void {
    for (; queue.busy < queue.max && queue.next < queue.waiting.length; queue.next += 1) {
      const { id, receivePart, text } = queue.waiting[queue.next]!;
      queue.busy += 1;
      active.set(id, { receivePart, queue });
      sendToService(`${id}:${text}`);
    }
    if (queue.next < queue.waiting.length) return;
    queue.waiting = [];
    queue.next = 0;
  }

  return {
    /** Sets the function that sends messages to the service. */
    connect(binding: (text: string) => void): void {
      sendToService = binding;
    },
    /**
     * Sends a request and returns its ID. The text `cancel `, followed by the ID of an active request, cancels that one: a run has no
     * other function, because each function that crosses the border of a realm stays in memory until the thread ends.
     */
    send(receivePart: ReceivePart, text: string): number {
      if (text.startsWith("cancel ")) {
        const cancelled = Number(text.slice("cancel ".length));
        if (active.has(cancelled)) sendToService(`${cancelled}:cancel`);
        return cancelled;
      }
      const queue = text.startsWith("outgoing ") ? outgoing : calls;
      count += 1;
      const id = count;
      queue.waiting.push({ id, receivePart, text });
      start(queue);
      return id;
    },
    answer(id: number, head: string | null, text: string | null, last: boolean): void {
      const call = active.get(id);
      if (call === undefined) return;
      // Not called as a method: an object as `this` cannot cross the border of a realm.
      const { receivePart } = call;
      receivePart(head, text, last);
      if (!last) return;
      active.delete(id);
      call.queue.busy -= 1;
      start(call.queue);
    },
    /** Drops all requests, in progress and waiting. */
    reset(): void {
      active.clear();
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
  const RunPromise = Promise;
  const RunTypeError = TypeError;
  const { parse, stringify } = JSON;
  const pending: Any = { __proto__: null };
  let count = 0;
  let post: ((number: number, text: string) => number) | null = null;

  const fault = () => new RunTypeError("Failed to fetch");

  /** Receives the parts of one response. `cancel` ends its request. */
  function createAnswer(resolve: (answer: Any) => void, reject: (error: unknown) => void, cancel: () => void) {
    let received = "";
    let state = 0;
    let settle: (() => void) | null = null;
    const text = () =>
      new RunPromise<string>((resolveText, rejectText) => {
        settle = () => {
          if (state !== 0) state === 1 ? resolveText(received) : rejectText(fault());
        };
        settle();
      });
    /** Returns the text that has arrived since the last call, and waits if there is none. Null at the end. */
    const next = () =>
      new RunPromise<string | null>((resolvePart, rejectText) => {
        settle = () => {
          const part = received;
          if (part === "" && state === 0) return;
          settle = null;
          received = "";
          if (part !== "") resolvePart(part);
          else state === 1 ? resolvePart(null) : rejectText(fault());
        };
        settle();
      });
    return (head: string | null, part: string | null, last: boolean): void => {
      if (head !== null) {
        const parsed = parse(head);
        resolve({ __proto__: null, status: parsed[0], headers: parsed[1], head: parsed, text, next, cancel });
      } else if (part === null) reject(fault());
      if (part !== null) received += part;
      if (last) state = part === null ? 2 : 1;
      if (settle !== null) settle();
    };
  }

  function send(text: string): Promise<Any> {
    return new RunPromise((resolve, reject) => {
      if (post === null) return reject(fault());
      count += 1;
      const number = count;
      let id = 0;
      pending[number] = createAnswer(resolve, reject, () => {
        if (pending[number] !== undefined) post!(number, `cancel ${id}`);
      });
      id = post(number, text);
    });
  }

  return {
    __proto__: null,
    /** Sets the function that sends requests. Null if none can be sent. */
    connect(send: ((number: number, text: string) => number) | null): void {
      post = send;
    },
    /** Receives a part of the response to the request with that number. */
    receive(number: number, head: string | null, text: string | null, last: boolean): void {
      const answer = pending[number];
      if (answer === undefined) return;
      if (last) delete pending[number];
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
