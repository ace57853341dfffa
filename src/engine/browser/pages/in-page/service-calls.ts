/** Sends requests of a run's client library to the service. One function runs in the global scope of the run, the other outside of it. */
import type { Any } from "./any.js";

export type HostServiceCalls = ReturnType<typeof createHostServiceCalls>;
export type OpenService = ReturnType<typeof createServiceOpener>;

/** The first part has a `head`: status and headers as JSON. `text` is null if the request or the rest of the response failed. */
type ReceivePart = (head: string | null, text: string | null, last: boolean) => void;

interface CallQueue {
  readonly max: number;
  activeCount: number;
  waiting: { id: number; receivePart: ReceivePart; text: string }[];
  nextIndex: number;
}

/** Runs outside of the run's global scope. The browser evaluates this function's source text. */
export function createHostServiceCalls(serviceMax: number, outgoingMax: number) {
  const active = new Map<number, { receivePart: ReceivePart; queue: CallQueue }>();
  const createQueue = (max: number): CallQueue => ({ max, activeCount: 0, waiting: [], nextIndex: 0 });
  let calls = createQueue(serviceMax);
  let outgoing = createQueue(outgoingMax);
  let callCount = 0;
  let sendToService: (text: string) => void = () => {};

  function sendWaitingCalls(queue: CallQueue): void {
    for (; queue.activeCount < queue.max && queue.nextIndex < queue.waiting.length; queue.nextIndex += 1) {
      const { id, receivePart, text } = queue.waiting[queue.nextIndex]!;
      queue.activeCount += 1;
      active.set(id, { receivePart, queue });
      sendToService(`${id}:${text}`);
    }
    if (queue.nextIndex < queue.waiting.length) return;
    queue.waiting = [];
    queue.nextIndex = 0;
  }

  return {
    connect(binding: (text: string) => void): void {
      sendToService = binding;
    },
    /** The text `cancel <ID>` cancels a request. A function for each request would stay in memory until the thread ends. */
    send(receivePart: ReceivePart, text: string): number {
      if (text.startsWith("cancel ")) {
        const cancelled = Number(text.slice("cancel ".length));
        if (active.has(cancelled)) sendToService(`${cancelled}:cancel`);
        return cancelled;
      }
      const queue = text.startsWith("outgoing ") ? outgoing : calls;
      callCount += 1;
      const id = callCount;
      queue.waiting.push({ id, receivePart, text });
      sendWaitingCalls(queue);
      return id;
    },
    answer(id: number, head: string | null, text: string | null, last: boolean): void {
      const call = active.get(id);
      if (call === undefined) return;
      // As a method, `receivePart` would get the object `call` as `this`, which cannot be passed to a realm.
      const { receivePart } = call;
      receivePart(head, text, last);
      if (!last) return;
      active.delete(id);
      call.queue.activeCount -= 1;
      sendWaitingCalls(call.queue);
    },
    reset(): void {
      active.clear();
      calls = createQueue(serviceMax);
      outgoing = createQueue(outgoingMax);
    },
  };
}

/** Runs in the run's global scope. The function stores the globals it uses, because the action may replace them. */
export function createServiceOpener(bodyMax: number, callMax: number, globalName: string) {
  const { defineProperty } = Reflect;
  const OriginalPromise = Promise;
  const OriginalTypeError = TypeError;
  const { parse, stringify } = JSON;
  const pending: Any = { __proto__: null };
  let callCount = 0;
  let post: (number: number, text: string) => number = () => 0;

  const createFetchError = () => new OriginalTypeError("Failed to fetch");

  /** Returns a function that receives the parts of a response. The first part resolves the request with the response. */
  function createPartReceiver(resolve: (answer: Any) => void, reject: (error: unknown) => void, cancel: () => void) {
    let received = "";
    let state = 0;
    let settle: (() => void) | null = null;
    const text = () =>
      new OriginalPromise<string>((resolveText, rejectText) => {
        settle = () => {
          if (state !== 0) state === 1 ? resolveText(received) : rejectText(createFetchError());
        };
        settle();
      });
    /** Resolves with the text that arrived since the last call, or with null at the end. Waits if there is no text. */
    const next = () =>
      new OriginalPromise<string | null>((resolvePart, rejectText) => {
        settle = () => {
          const part = received;
          if (part === "" && state === 0) return;
          settle = null;
          received = "";
          if (part !== "") resolvePart(part);
          else state === 1 ? resolvePart(null) : rejectText(createFetchError());
        };
        settle();
      });
    return (head: string | null, part: string | null, last: boolean): void => {
      if (head !== null) {
        const parsed = parse(head);
        resolve({ __proto__: null, status: parsed[0], headers: parsed[1], head: parsed, text, next, cancel });
      } else if (part === null) reject(createFetchError());
      if (part !== null) received += part;
      if (last) state = part === null ? 2 : 1;
      if (settle !== null) settle();
    };
  }

  function sendRequest(text: string): Promise<Any> {
    return new OriginalPromise((resolve, reject) => {
      callCount += 1;
      const number = callCount;
      let id = 0;
      pending[number] = createPartReceiver(resolve, reject, () => {
        if (pending[number] !== undefined) post(number, `cancel ${id}`);
      });
      id = post(number, text);
    });
  }

  function receivePartOf(number: number, head: string | null, text: string | null, last: boolean): void {
    const answer = pending[number];
    if (answer === undefined) return;
    if (last) delete pending[number];
    answer(head, text, last);
  }

  /** Sends a request to this service. Returns null if it is too long: the client library then uses the browser's network. */
  function call(method: string, url: string, headers: Any, body: string | null): Promise<Any> | null {
    if (body !== null && body.length > bodyMax) return null;
    const text = stringify([method, url, headers, body]);
    if (text.length > callMax) return null;
    return sendRequest(text);
  }

  const request = (options: string): Promise<Any> => sendRequest(`outgoing ${options}`);

  /** Defines the global through which the client library sends requests to the service at the URL `base`. */
  return (base: string, settings: string, sendToHost: HostServiceCalls["send"]): void => {
    post = (number, text) => sendToHost((head, part, last) => receivePartOf(number, head, part, last), text);
    const value = { __proto__: null, base, call, request, settings };
    defineProperty(globalThis, globalName, { value, configurable: true });
  };
}
