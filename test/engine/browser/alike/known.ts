/** Known differences between a network isolate and a web worker, each with the reason why it stays. */

const matchTitles = (titles: readonly string[]): RegExp =>
  new RegExp(`^(${titles.map((title) => title.replaceAll(/[{}()'[\]/.?*+|]/g, "\\$&")).join("|")})$`);

/** Each pattern has a reason. All samples whose title matches a pattern must have different results. */
export const KNOWN_DIFFERENCES: readonly { of: RegExp; why: string }[] = [
  {
    of: /^(the text of (Event|EventTarget|AbortSignal|AbortController|Headers|Request|Response|Blob|File|FormData|fetch|setTimeout|clearTimeout|setInterval|clearInterval|queueMicrotask)|the texts of functions)$/,
    why: "functions of the realm are code; only Function.prototype.toString in another's place could hide that",
  },
  { of: matchTitles(["an attribute cannot be set"]), why: "V8 names the class of its own objects otherwise" },
  {
    of: /^fetch on (\{\}|1|new URL\('http:\/\/a\/'\))$|^(atob|btoa) without values$/,
    why: "the name of the worker's scope in a message, and a function that does not mind on what it is called",
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
    of: matchTitles(["a blob's options: a proxy of a blob", "a file's options: a proxy of a blob"]),
    why: "the service cannot distinguish an error of the language in the realm from one of the author, so the message lacks the name of what failed",
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
