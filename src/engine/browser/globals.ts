/** Lists the JavaScript globals of each sandbox mode. Code that uses any other global runs in a document (an empty page). */

const LANGUAGE_GLOBALS =
  "Object Function Array Number Infinity NaN undefined Boolean String Symbol Date Promise RegExp Error AggregateError " +
  "EvalError RangeError ReferenceError SuppressedError SyntaxError TypeError URIError JSON Math Intl Temporal ArrayBuffer " +
  "Atomics DataView Int8Array Uint8Array Uint8ClampedArray Int16Array Uint16Array Int32Array Uint32Array BigInt64Array " +
  "BigUint64Array Float16Array Float32Array Float64Array Map BigInt Set Iterator WeakMap WeakSet WeakRef Proxy Reflect " +
  "DisposableStack AsyncDisposableStack globalThis eval parseFloat parseInt isFinite isNaN " +
  "decodeURI decodeURIComponent encodeURI encodeURIComponent escape unescape";

/** Classes that a network isolate has as globals. Their objects stay in its worker thread. A parent class is before its subclasses. */
export const NETWORK_ISOLATE_CLASSES: readonly string[] = [
  "Event",
  "EventTarget",
  "AbortSignal",
  "AbortController",
  "Headers",
  "Request",
  "Response",
  "Blob",
  "File",
  "FormData",
];
/** Classes that are no globals of a network isolate, although it has objects of them, such as `crypto`. */
export const NETWORK_ISOLATE_NON_GLOBAL_CLASSES: readonly string[] = [
  "Crypto",
  "SubtleCrypto",
  "CryptoKey",
  "ReadableStream",
  "ReadableStreamDefaultReader",
];
const PLATFORM_GLOBALS =
  "fetch crypto setTimeout clearTimeout setInterval clearInterval queueMicrotask atob btoa " +
  "TextEncoder TextDecoder URL URLSearchParams DOMException";

const COMMON_DOCUMENT_GLOBALS = "FinalizationRegistry structuredClone performance";

/** Members of `navigator` that code can read in a trial (first attempt in an isolate). Access to any other member ends the trial. */
export const TRIAL_NAVIGATOR_MEMBERS: readonly string[] =
  "appCodeName appName appVersion deviceMemory hardwareConcurrency language languages onLine platform product userAgent".split(
    " ",
  );

export const ISOLATE_GLOBALS: readonly string[] = `${LANGUAGE_GLOBALS} console`.split(" ");

export const NETWORK_ISOLATE_GLOBALS: readonly string[] = [
  ...ISOLATE_GLOBALS,
  ...NETWORK_ISOLATE_CLASSES,
  ...PLATFORM_GLOBALS.split(" "),
];

/** The only global of a network isolate that sends requests. Code without it needs no network. */
export const REQUEST_SENDING_GLOBAL = "fetch";

/** Classes whose constructor without arguments has no effect and never throws. */
const INERT_CLASSES = ["TextEncoder", "TextDecoder", "AbortController"];

/** Replaces a global in a trial (first attempt in an isolate). The kind decides which uses are allowed. Any other use ends the trial. */
export type GlobalStandIn = readonly [
  name: string,
  kind: "object" | "function" | "inert" | "clock" | "scope" | "navigator" | "refused",
];

function getPlatformStandInKind(name: string): GlobalStandIn[1] {
  if (name === "crypto") return "object";
  if (name === "performance") return "clock";
  return INERT_CLASSES.includes(name) ? "inert" : "function";
}

const createStandInList = (names: readonly string[]): GlobalStandIn[] =>
  names.filter((name) => !ISOLATE_GLOBALS.includes(name)).map((name) => [name, getPlatformStandInKind(name)]);

export const NETWORK_ISOLATE_STAND_INS: readonly GlobalStandIn[] = createStandInList(NETWORK_ISOLATE_GLOBALS);

const ALWAYS_REPLACED_GLOBALS = [...NETWORK_ISOLATE_GLOBALS, ...COMMON_DOCUMENT_GLOBALS.split(" ")];

const GLOBAL_OBJECT_NAMES = "window self frames parent top".split(" ");
const DOCUMENT_OBJECTS =
  "document location history screen localStorage sessionStorage indexedDB caches WebAssembly".split(" ");
const DOCUMENT_FUNCTIONS = (
  "XMLHttpRequest FileReader Worker WebSocket EventSource MessageChannel MessagePort BroadcastChannel Image Audio Node NodeList Element " +
  "HTMLElement HTMLCanvasElement HTMLImageElement HTMLVideoElement SVGElement Document DocumentFragment DOMParser XMLSerializer Range " +
  "MutationObserver FileList ImageData OffscreenCanvas CustomEvent MessageEvent KeyboardEvent MouseEvent Window CSSStyleSheet " +
  "requestAnimationFrame cancelAnimationFrame requestIdleCallback getComputedStyle matchMedia postMessage addEventListener " +
  "removeEventListener dispatchEvent alert " +
  "ReadableStream ReadableStreamDefaultReader ReadableStreamBYOBReader WritableStream WritableStreamDefaultWriter TransformStream " +
  "ByteLengthQueuingStrategy CountQueuingStrategy TextDecoderStream TextEncoderStream CompressionStream DecompressionStream"
).split(" ");

const DOCUMENT_STAND_IN_KINDS: ReadonlyMap<string, GlobalStandIn[1]> = new Map<string, GlobalStandIn[1]>([
  ...createStandInList(ALWAYS_REPLACED_GLOBALS),
  ...GLOBAL_OBJECT_NAMES.map((name) => [name, "scope"] as const),
  ...DOCUMENT_OBJECTS.map((name) => [name, "object"] as const),
  ...DOCUMENT_FUNCTIONS.map((name) => [name, "function"] as const),
  ["navigator", "navigator"],
]);

/** Lists the stand-ins of a trial: for some common globals, and for the globals `names` that occur in the run's code. */
export const listDocumentStandIns = (names: readonly string[]): GlobalStandIn[] =>
  [...new Set([...ALWAYS_REPLACED_GLOBALS, "navigator", ...names])]
    .filter((name) => !ISOLATE_GLOBALS.includes(name))
    .map((name) => [name, DOCUMENT_STAND_IN_KINDS.get(name) ?? "refused"]);
