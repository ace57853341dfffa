/** Messages from an isolate to its thread, and from a thread or document to the service: a tag, a space, and the content. */

/** `data ` is followed by the result as JSON, `error ` by a HarnessFailure as JSON. `undefined`: the run has no result. */
export type RunAnswerText = "undefined" | `data ${string}` | `error ${string}`;

/** `answer` contains a RunAnswerText. `needs-more`: the code of the run uses a global that the isolate does not have. */
export type IsolateMessage = `console ${string}` | `answer ${string}` | "needs-more";

/** Script for a thread. `content` is its key in the thread's cache; empty if it must not be cached. `text` is null if the cache has it. */
export type SentScript = readonly [name: string, text: string | null, content: string];

/** Use of a worker thread after a run: `reuse` for another run, `measure` its memory first, or `replace` the thread. */
export type ThreadUseAfterRun = "reuse" | "measure" | "replace";

/** `long-answer` contains only the length of the answer, which the service then reads in parts. */
export type ThreadMessage =
  | `console ${string}`
  | `service ${string}`
  | `answer ${ThreadUseAfterRun} ${string}`
  | `long-answer ${number}`;

/** Sent through the DevTools binding for console lines, which are JSON objects and so never start with `service `. */
export type DocumentMessage = `service ${string}`;
