/**
 * Messages between an isolate, its thread and the service: a tag, a space, and the content. Senders in the browser are typed with them; the
 * receivers are realm-worker.ts, isolate.ts and answer.ts.
 */

/** Result of a run: no data, the JSON of the data, or the JSON of a HarnessFailure. */
export type AnswerText = "undefined" | `data ${string}` | `error ${string}`;

/** From an isolate to its thread. `answer` starts with the duration of the run in milliseconds. */
export type IsolateMessage = `console ${string}` | `answer ${number} ${string}` | "needs-more";

/** Next step of a thread after a run: serve the next run, be measured first, or be replaced. */
export type ThreadStep = "reuse" | "measure" | "replace";

/** From a thread to the service. `long-answer` has the length of an answer that is read in parts. */
export type ThreadMessage =
  | `console ${string}`
  | `service ${string}`
  | `answer ${ThreadStep} ${string}`
  | `long-answer ${number}`;

/** From a document to the service, over the binding of its console, whose lines are JSON objects. */
export type DocumentMessage = `service ${string}`;
