/** Known differences between a network isolate and a web worker, each with the reason why it stays. */

const matchTitles = (titles: readonly string[]): RegExp =>
  new RegExp(`^(${titles.map((title) => title.replaceAll(/[{}()'[\]/.?*+|]/g, "\\$&")).join("|")})$`);

/** Each pattern has a reason. All samples whose title matches a pattern must have different results. */
export const KNOWN_DIFFERENCES: readonly { of: RegExp; why: string }[] = [
  {
    of: /^(the text of (Headers|Request|Response|Blob|File|FormData|fetch|setTimeout|clearTimeout|setInterval|clearInterval|queueMicrotask)|the texts of functions)$/,
    why: "functions of the realm are code; only Function.prototype.toString in another's place could hide that",
  },
  { of: matchTitles(["an attribute cannot be set"]), why: "V8 names the class of its own objects otherwise" },
  {
    of: /^(fetch|queueMicrotask) on (\{\}|1|new URL\('http:\/\/a\/'\))$|^(queueMicrotask|atob|btoa) without values$/,
    why: "the name of the worker's scope in a message, and functions that do not mind on what they are called",
  },
  {
    of: matchTitles(
      ["new Headers", "a response's headers", "Response.json's headers", "new Blob", "new File"].map(
        (taker) => `${taker}: headers with an iterator`,
      ),
    ),
    why: "what the author puts onto an object of the platform's stays in the realm, and the platform converts its own",
  },
  {
    of: matchTitles(["new Blob: bytes with an iterator", "new File: bytes with an iterator"]),
    why: "as headers with an iterator",
  },
  {
    of: matchTitles([
      "new Response: a disturbed stream",
      "fetch's body by POST: a disturbed stream",
      "new Request: a disturbed stream",
    ]),
    why: "a realm cannot be asked whether one of its streams was ever read",
  },
  {
    of: matchTitles(["a blob's options: a proxy of a blob", "a file's options: a proxy of a blob"]),
    why: "the service cannot distinguish an error of the language in the realm from one of the author, so the message lacks the name of what failed",
  },
  {
    of: matchTitles(["a body that is another's, being read"]),
    why: "a lock of the realm's stream is passed on only when the stream itself is passed on",
  },
  {
    of: matchTitles(["the prototype of EventTarget"]),
    why: "observables of events, which none of the names that there are can be used for, would end the page where one throws",
  },
  {
    of: /^(?!none|null|no content|an error|a redirect|a request of nothing).*, (locked: its (text|json|bytes|buffer|blob|form|clone|text, its state)|(locked and let go|with its stream had): its text, its state)$/,
    why: "the platform does not know of a reader before its first read, and the stream of the realm not of a body that was read as a whole",
  },
  {
    of: matchTitles(["URL itself", "the members of URL", "the prototype of URL"]),
    why: "an isolate has no addresses of blobs; code that names createObjectURL runs in a document",
  },
  {
    of: matchTitles(["bytes that are taken away by a getter"]),
    why: "bytes are copied as they are given, before the platform reads anything else of the call",
  },
  {
    of: matchTitles(["settled in the order of the language"]),
    why: "what the platform settles at once crosses the border first, and is heard a step of the language later",
  },
  {
    of: matchTitles(["code of text"]),
    why: "evaluating a text fails in a realm where a timer of the worker's calls it",
  },
];
