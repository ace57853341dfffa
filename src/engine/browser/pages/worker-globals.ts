/**
 * The globals of a run that has no document, from the least to the most: the language; with it what neither reaches anything nor outlives
 * the run's worker; where it has a network also what asks for something and reads the answer. Everything else that a global scope has is
 * taken off it.
 */

const LANGUAGE =
  "Object Function Array Number Infinity NaN undefined Boolean String Symbol Date Promise RegExp Error AggregateError " +
  "EvalError RangeError ReferenceError SuppressedError SyntaxError TypeError URIError JSON Math Intl Temporal ArrayBuffer " +
  "Atomics DataView Int8Array Uint8Array Uint8ClampedArray Int16Array Uint16Array Int32Array Uint32Array BigInt64Array " +
  "BigUint64Array Float16Array Float32Array Float64Array Map BigInt Set Iterator WeakMap WeakSet WeakRef Proxy Reflect " +
  "DisposableStack AsyncDisposableStack globalThis eval parseFloat parseInt isFinite isNaN " +
  "decodeURI decodeURIComponent encodeURI encodeURIComponent escape unescape";

/** Acts when the run is over, as nothing else of the language can. */
const LATE = "FinalizationRegistry";

const BESIDE =
  "setTimeout clearTimeout setInterval clearInterval queueMicrotask structuredClone atob btoa crypto performance " +
  "TextEncoder TextDecoder URL URLSearchParams AbortController AbortSignal DOMException Event EventTarget navigator";

const REQUESTS =
  "fetch Headers Request Response FormData Blob File ReadableStream ReadableStreamDefaultReader ReadableStreamBYOBReader " +
  "WritableStream WritableStreamDefaultWriter TransformStream ByteLengthQueuingStrategy CountQueuingStrategy " +
  "TextDecoderStream TextEncoderStream CompressionStream DecompressionStream";

/** Of what asks for something, and of what stands beside the language, that which a realm has or can be lent (in-page/lent-platform.ts). */
export const LENT_CLASSES: readonly string[] = ["Headers", "Request", "Response", "Blob", "File", "FormData"];
/** Of objects that it is lent, without a name there. */
export const LENT_UNNAMED: readonly string[] = ["Crypto", "SubtleCrypto", "CryptoKey"];
const BORROWED =
  "fetch crypto setTimeout clearTimeout setInterval clearInterval queueMicrotask atob btoa " +
  "TextEncoder TextDecoder URL URLSearchParams AbortController AbortSignal DOMException Event EventTarget " +
  "ReadableStream ReadableStreamDefaultReader ReadableStreamBYOBReader WritableStream WritableStreamDefaultWriter TransformStream " +
  "ByteLengthQueuingStrategy CountQueuingStrategy TextDecoderStream TextEncoderStream CompressionStream DecompressionStream";

/** What `navigator` has there: what it says of the browser. What it keeps, locks or reaches is taken off it. */
export const NAVIGATOR_MEMBERS: readonly string[] =
  "appCodeName appName appVersion deviceMemory hardwareConcurrency language languages onLine platform product userAgent".split(
    " ",
  );

/** What a realm is lent of `performance`: its own clock. What else that has is of all runs of its thread. */
export const PERFORMANCE_MEMBERS: readonly string[] = ["now", "timeOrigin"];

/** Functions of which an instance may be made that does nothing until it is used, and that never refuse to be made without a value. */
const INERT = ["TextEncoder", "TextDecoder", "AbortController"];

/**
 * How a name is stood in for where it is not there (in-page/stand-ins.ts): by what can be held and compared, by a clock, by the global object
 * itself (`scope`), by what is known of `navigator`, or by a refusal to whoever reads it (`refused`).
 */
export type StandIn = readonly [
  name: string,
  kind: "object" | "function" | "inert" | "clock" | "scope" | "navigator" | "refused",
];

export const LANGUAGE_GLOBALS: readonly string[] = `${LANGUAGE} console`.split(" ");

export const WORKER_GLOBALS: readonly string[] = [...LANGUAGE_GLOBALS, ...`${LATE} ${BESIDE}`.split(" ")];

export const FETCH_GLOBALS: readonly string[] = [...LANGUAGE_GLOBALS, ...LENT_CLASSES, ...BORROWED.split(" ")];

export const NETWORK_GLOBALS: readonly string[] = [...WORKER_GLOBALS, ...REQUESTS.split(" ")];

function kindBesideLanguage(name: string): StandIn[1] {
  if (name === "crypto") return "object";
  if (name === "performance") return "clock";
  return INERT.includes(name) ? "inert" : "function";
}

const beyondLanguage = (globals: readonly string[]): StandIn[] =>
  globals
    .filter((name) => !LANGUAGE_GLOBALS.includes(name) && name !== "navigator")
    .map((name) => [name, kindBesideLanguage(name)]);

/** What a trial of each realm lacks in one of the language; what `navigator` says is given to it. */
export const STAND_INS = {
  worker: beyondLanguage(WORKER_GLOBALS),
  fetch: beyondLanguage(FETCH_GLOBALS),
  network: beyondLanguage(NETWORK_GLOBALS),
} as const;

/** Names by which a document's scope knows itself. */
const SCOPES = "window self frames parent top".split(" ");
/** Of what else a document has, that which libraries hold, or look at the type of, for what they may do later. */
const DOCUMENT_OBJECTS =
  "document location history screen localStorage sessionStorage indexedDB caches WebAssembly".split(" ");
const DOCUMENT_FUNCTIONS = (
  "XMLHttpRequest FileReader Worker WebSocket EventSource MessageChannel MessagePort BroadcastChannel Image Audio Node NodeList Element " +
  "HTMLElement HTMLCanvasElement HTMLImageElement HTMLVideoElement SVGElement Document DocumentFragment DOMParser XMLSerializer Range " +
  "MutationObserver FileList ImageData OffscreenCanvas CustomEvent MessageEvent KeyboardEvent MouseEvent Window CSSStyleSheet " +
  "requestAnimationFrame cancelAnimationFrame requestIdleCallback getComputedStyle matchMedia postMessage addEventListener " +
  "removeEventListener dispatchEvent alert"
).split(" ");

const DOCUMENT_KINDS: ReadonlyMap<string, StandIn[1]> = new Map<string, StandIn[1]>([
  ...STAND_INS.network,
  ...SCOPES.map((name) => [name, "scope"] as const),
  ...DOCUMENT_OBJECTS.map((name) => [name, "object"] as const),
  ...DOCUMENT_FUNCTIONS.map((name) => [name, "function"] as const),
  ["navigator", "navigator"],
]);

/** In a trial of a document: for what a network has, and for those of its names. It has too many to stand in for each, in each run. */
export const documentStandIns = (names: readonly string[]): StandIn[] =>
  [...new Set([...NETWORK_GLOBALS, ...names])]
    .filter((name) => !LANGUAGE_GLOBALS.includes(name))
    .map((name) => [name, DOCUMENT_KINDS.get(name) ?? "refused"]);
