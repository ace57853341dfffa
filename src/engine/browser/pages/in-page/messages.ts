/**
 * Types of the messages from an isolate to its thread, and from a thread or document to the service. A message is a tag, a
 * space, and the content. realm-worker.ts, isolate.ts and answer.ts receive them.
 */

/**
 * Text of an answer: `undefined` if the run has no result, `data ` with the result as JSON, or `error ` with a
 * HarnessFailure as JSON.
 */
export type RunAnswerText = "undefined" | `data ${string}` | `error ${string}`;

/** Message from an isolate to its thread. `answer` contains the duration of the run in milliseconds, and a RunAnswerText. */
export type IsolateMessage = `console ${string}` | `answer ${number} ${string}` | "needs-more";

/** Use of a worker thread after a run: `reuse` for another run, `measure` its memory first, or `replace` the thread. */
export type ThreadStep = "reuse" | "measure" | "replace";

/**
 * Message from a thread to the service. `long-answer` contains only the length of the answer, which the service then
 * reads in parts.
 */
export type ThreadMessage =
  | `console ${string}`
  | `service ${string}`
  | `answer ${ThreadStep} ${string}`
  | `long-answer ${number}`;

/**
 * Message from a document to the service. It is sent through the DevTools binding for console lines, which are JSON
 * objects and so never start with `service `.
 */
export type DocumentMessage = `service ${string}`;
