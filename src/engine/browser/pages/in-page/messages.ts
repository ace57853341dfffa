/**
 * Types of the messages between an isolate, its thread and the service: a tag, a space, and the content. The senders
 * run in the browser; the receivers are realm-worker.ts, isolate.ts and answer.ts.
 */

/** Result of a run: no data, the data as JSON, or a HarnessFailure as JSON. */
export type AnswerText = "undefined" | `data ${string}` | `error ${string}`;

/** Message from an isolate to its thread. An `answer` starts with the duration of the run in milliseconds. */
export type IsolateMessage = `console ${string}` | `answer ${number} ${string}` | "needs-more";

/** Next step of a thread after a run: serve the next run, be measured first, or be replaced. */
export type ThreadStep = "reuse" | "measure" | "replace";

/** Message from a thread to the service. `long-answer` contains the length of an answer, which is then read in parts. */
export type ThreadMessage =
  | `console ${string}`
  | `service ${string}`
  | `answer ${ThreadStep} ${string}`
  | `long-answer ${number}`;

/** Message from a document to the service, over the binding of the console, whose lines are JSON objects. */
export type DocumentMessage = `service ${string}`;
