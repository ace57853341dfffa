/** Messages from an isolate to its thread, and from a thread or document to the service: a tag, a space, and the content. */

/** `data ` is followed by the result as JSON, `error ` by a HarnessFailure as JSON. `undefined`: the run has no result. */
export type RunAnswerText = "undefined" | `data ${string}` | `error ${string}`;

/** `answer` contains a RunAnswerText, or `needs-more` if the code of the run uses a global that the isolate does not have. */
export type IsolateMessage = `console ${string}` | `answer ${string}`;

/** Script for a thread, which stores texts by `key`. `text` is null if the thread already has it; `key` is "" for a text not to store. */
export type SentScript = readonly [name: string, text: string | null, key: string];

/** `reuse` the worker thread for another run, `measure` its memory first, or `replace` it. */
export type ThreadUse = "reuse" | "measure" | "replace";

/** `long-answer` contains only the length of the answer, which the service then reads in parts. */
export type ThreadMessage = `console ${string}` | `service ${string}` | `answer ${string}` | `long-answer ${number}`;

/** Sent through the DevTools binding for console lines, which are JSON objects and so never start with `service `. */
export type DocumentMessage = `service ${string}`;
