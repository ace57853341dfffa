/** Sends requests of a run's client library to the service. One function runs in the global scope of the run, the other outside of it. */
import type { Any } from "./any.js";

export type HostServiceCalls = ReturnType<typeof createHostServiceCalls>;
export type OpenService = ReturnType<typeof createServiceOpener>;

/** The first part has a `head`: status and headers as JSON. `text` is null if the request or the rest of the response failed. */
type ReceivePart = (id: number, head: string | null, text: string | null, last: boolean) => void;

interface CallQueue {
  freeSlots: number;
  waiting: { id: number; text: string }[];
}

/** Runs outside of the run's global scope. The browser evaluates this function's source text. */
export function createHostServiceCalls(serviceRequestsMax: number, outgoingRequestsMax: number) {
  let sendToService: (text: string) => void = () => {};
  let run: { receivePart: ReceivePart; queueByActiveId: Map<number, CallQueue> } | null = null;

  function sendWaitingCalls(queue: CallQueue): void {
    while (queue.freeSlots > 0 && queue.waiting.length > 0) {
      const { id, text } = queue.waiting.shift()!;
      queue.freeSlots -= 1;
      run!.queueByActiveId.set(id, queue);
      sendToService(`${id}:${text}`);
    }
  }

  return {
    connect(binding: (text: string) => void): void {
      sendToService = binding;
    },
    /** Returns a function that sends a request of the run; the text `cancel` cancels the request. After `reset`, it does nothing. */
    open(receivePart: ReceivePart): (id: number, text: string) => void {
      const openedRun = { receivePart, queueByActiveId: new Map<number, CallQueue>() };
      const serviceQueue: CallQueue = { freeSlots: serviceRequestsMax, waiting: [] };
      const outgoingQueue: CallQueue = { freeSlots: outgoingRequestsMax, waiting: [] };
      run = openedRun;
      return (id, text) => {
        if (run !== openedRun) return;
        if (text === "cancel") {
          if (run.queueByActiveId.has(id)) sendToService(`${id}:cancel`);
          return;
        }
        const queue = text.startsWith("outgoing ") ? outgoingQueue : serviceQueue;
        queue.waiting.push({ id, text });
        sendWaitingCalls(queue);
      };
    },
    receiveResponsePart(id: number, head: string | null, text: string | null, last: boolean): void {
      const queue = run?.queueByActiveId.get(id);
      if (run === null || queue === undefined) return;
      // As a method, `receivePart` would get the object `run` as `this`, which cannot be passed to a realm.
      const { receivePart, queueByActiveId } = run;
      receivePart(id, head, text, last);
      if (!last) return;
      queueByActiveId.delete(id);
      queue.freeSlots += 1;
      sendWaitingCalls(queue);
    },
    reset(): void {
      run = null;
    },
  };
}

/** Runs in the run's global scope. The function stores the globals it uses, because the action may replace them. */
export function createServiceOpener(bodyMaxCharacters: number, callMaxCharacters: number, globalName: string) {
  const { defineProperty } = Reflect;
  const OriginalPromise = Promise;
  const OriginalTypeError = TypeError;
  const { parse, stringify } = JSON;
  const pending: Any = { __proto__: null };
  let lastRequestId = 0;
  let send: (id: number, text: string) => void = () => {};

  const createFetchError = () => new OriginalTypeError("Failed to fetch");

  /** Returns a function that receives the parts of a response. The first part resolves the request with the response. */
  function createPartReceiver(resolve: (answer: Any) => void, reject: (error: unknown) => void, cancel: () => void) {
    let receivedText = "";
    let state: "open" | "ended" | "failed" = "open";
    let settle: (() => void) | null = null;
    /** Resolves with the text that arrived since the last call, or with null at the end. Waits if there is no text. */
    const next = () =>
      new OriginalPromise<string | null>((resolvePart, rejectPart) => {
        settle = () => {
          const part = receivedText;
          if (part === "" && state === "open") return;
          settle = null;
          receivedText = "";
          if (part !== "") resolvePart(part);
          else state === "ended" ? resolvePart(null) : rejectPart(createFetchError());
        };
        settle();
      });
    const text = async () => {
      let all = "";
      for (let part = await next(); part !== null; part = await next()) all += part;
      return all;
    };
    return (head: string | null, part: string | null, last: boolean): void => {
      if (head !== null) {
        const parsed = parse(head);
        resolve({ __proto__: null, status: parsed[0], headers: parsed[1], head: parsed, text, next, cancel });
      } else if (part === null) reject(createFetchError());
      if (part !== null) receivedText += part;
      if (last) state = part === null ? "failed" : "ended";
      if (settle !== null) settle();
    };
  }

  function sendRequest(text: string): Promise<Any> {
    return new OriginalPromise((resolve, reject) => {
      lastRequestId += 1;
      const id = lastRequestId;
      pending[id] = createPartReceiver(resolve, reject, () => {
        if (pending[id] !== undefined) send(id, "cancel");
      });
      send(id, text);
    });
  }

  function receivePart(id: number, head: string | null, text: string | null, last: boolean): void {
    const receive = pending[id];
    if (receive === undefined) return;
    if (last) delete pending[id];
    receive(head, text, last);
  }

  /** Sends a request to this service. Returns null for a long request; the client library then uses the browser's network. */
  function call(method: string, url: string, headers: Any, body: string | null): Promise<Any> | null {
    if (body !== null && body.length > bodyMaxCharacters) return null;
    const text = stringify([method, url, headers, body]);
    if (text.length > callMaxCharacters) return null;
    return sendRequest(text);
  }

  const request = (options: string): Promise<Any> => sendRequest(`outgoing ${options}`);

  /** Defines the global through which the client library sends requests to the service at the URL `base`, and to other services. */
  return (base: string, settings: string, openCalls: HostServiceCalls["open"]): void => {
    send = openCalls(receivePart);
    const value = { __proto__: null, base, call, request, settings };
    defineProperty(globalThis, globalName, { value, configurable: true });
  };
}
