/**
 * Chooses the sandbox mode for code: the cheapest mode that has all globals which the code uses (globals.ts). Parses
 * the code, and never evaluates it.
 */
import {
  type AnyNode,
  type AssignmentProperty,
  type MemberExpression,
  type Program,
  type Property,
  parse,
} from "acorn";
import { fullAncestor } from "acorn-walk";
import { analyze } from "eslint-scope";
import browserGlobals from "globals";
import { LRUCache } from "lru-cache";
import { ISOLATE_GLOBALS, NETWORK_ISOLATE_GLOBALS, PERFORMANCE_MEMBERS, REQUESTING_GLOBAL } from "./globals.js";
import { exceedsNetworkIsolate } from "./isolate-limits.js";
import type { Mode } from "./run.js";

/**
 * Maximum length of code that is analyzed. Longer code runs in a document, because the analysis would block the process
 * for too long.
 */
export const ANALYZED_MAX_CHARACTERS = 16_384;
/** Globals through which code can use other globals without their names. */
const DYNAMIC_CODE_NAMES = ["globalThis", "eval", "eval()", "Function"];
/** Names for the members of `performance`. An isolate has only some of its members, so code must name the member that it uses. */
const PARTIAL_MEMBERS = PERFORMANCE_MEMBERS.map((member) => `performance.${member}`);

const withoutDynamicCodeNames = (names: readonly string[]) =>
  new Set(names.filter((name) => !DYNAMIC_CODE_NAMES.includes(name)));
/** Names that code may use in each isolate, the cheapest first. */
const ISOLATE_MODES = [
  { mode: "isolate", names: withoutDynamicCodeNames(ISOLATE_GLOBALS) },
  { mode: "network-isolate", names: withoutDynamicCodeNames([...NETWORK_ISOLATE_GLOBALS, ...PARTIAL_MEMBERS]) },
] as const;

/** Mode of a piece of code. `network` is true if the code uses a global that sends requests, or runs in a document. */
export interface CodeNeeds {
  mode: Mode;
  network: boolean;
}

/** Returns the needs of a piece of code. @param defined globals that packages define */
export type NeedsOfCode = (code: string, defined?: readonly string[]) => CodeNeeds;

const DOCUMENT_NEEDS: CodeNeeds = { mode: "document", network: true };

/** Matches globals of a document that the package `globals` does not list. */
const FURTHER_GLOBALS =
  /webkit|^(FinalizationRegistry|AnimationTrigger|BeforeInstallPromptEvent|captureEvents|releaseEvents)$/i;
const IDENTIFIER_PATTERN = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u;

/** True if a document may have this global. False for a name that no browser has, such as a global of Node. */
export function isDocumentGlobal(name: string): boolean {
  return !IDENTIFIER_PATTERN.test(name) || Object.hasOwn(browserGlobals.browser, name) || FURTHER_GLOBALS.test(name);
}

/** Globals that Chromium has and that FURTHER_GLOBALS matches. The expression also matches many words that are no globals. */
const FURTHER_OF_CHROMIUM = new Set(
  (
    "webkitURL webkitRTCPeerConnection webkitMediaStream WebKitMutationObserver WebKitCSSMatrix webkitSpeechRecognitionError " +
    "webkitSpeechRecognitionEvent webkitSpeechRecognition webkitSpeechGrammar webkitSpeechGrammarList webkitCancelAnimationFrame " +
    "webkitRequestAnimationFrame webkitRequestFileSystem webkitResolveLocalFileSystemURL onwebkitanimationend onwebkitanimationiteration " +
    "onwebkitanimationstart onwebkittransitionend AnimationTrigger BeforeInstallPromptEvent captureEvents releaseEvents"
  ).split(" "),
);

/** Matches a word, or an escape sequence, so that the `n` of `\n` does not count as the start of a word. */
const CODE_WORD = /\\.|[A-Za-z_$][\w$]*/g;

/** Maximum number of texts whose names are cached. */
const CACHED_TEXTS_MAX = 1_000;
const namesByContent = new LRUCache<string, readonly string[]>({ max: CACHED_TEXTS_MAX });

/** Returns the globals of a document whose names occur anywhere in a script. `content` is the key of the script in the cache. */
export function findDocumentNames(source: string, content?: string): readonly string[] {
  const knownNames = content === undefined ? undefined : namesByContent.get(content);
  if (knownNames !== undefined) return knownNames;
  const words = [...new Set(source.match(CODE_WORD))];
  const names = words.filter((word) => Object.hasOwn(browserGlobals.browser, word) || FURTHER_OF_CHROMIUM.has(word));
  if (content !== undefined) namesByContent.set(content, names);
  return names;
}

/**
 * Returns the mode of a package by the globals that it uses. Ignores globals that no browser has, and the global object,
 * because libraries only test for them. `eval` needs a document, because in an isolate it does not see local variables.
 */
export function needsOfNames(names: readonly string[]): CodeNeeds {
  const needed = names.filter((name) => !DYNAMIC_CODE_NAMES.includes(name) && isDocumentGlobal(name));
  if (names.includes("eval") || !needed.every((name) => NETWORK_ISOLATE_GLOBALS.includes(name))) return DOCUMENT_NEEDS;
  return { mode: "network-isolate", network: needed.includes(REQUESTING_GLOBAL) };
}

/** Maximum size of the cache in characters of code. */
const CACHE_CHARACTERS = 16 * 1024 * 1024;

export function createNeedsOfCode(cacheCharacters = CACHE_CHARACTERS): NeedsOfCode {
  const cache = new LRUCache<string, CodeNeeds>({
    maxSize: cacheCharacters,
    sizeCalculation: (_, key) => key.length + 1,
  });

  return (code, defined = []) => {
    // The key with `defined` is the text of a JSON array of strings. Code with an `execute` function is never such a
    // text, so the keys with and without `defined` cannot be equal.
    const key = defined.length === 0 ? code : JSON.stringify([...defined, code]);
    const cachedNeeds = cache.get(key);
    if (cachedNeeds !== undefined) return cachedNeeds;
    const needs = needsOfCode(code, defined);
    cache.set(key, needs);
    return needs;
  };
}

function needsOfCode(code: string, defined: readonly string[]): CodeNeeds {
  if (code.length > ANALYZED_MAX_CHARACTERS) return DOCUMENT_NEEDS;
  try {
    const program = parse(code, { ecmaVersion: "latest", sourceType: "script", ranges: true });
    if (mayUseUnnamedGlobals(program)) return DOCUMENT_NEEDS;
    const used = findUndeclaredNames(program).filter((name) => !defined.includes(name));
    const isolate = ISOLATE_MODES.find(({ names }) => used.every((name) => names.has(name)));
    if (!isolate || (isolate.mode === "network-isolate" && exceedsNetworkIsolate(program))) return DOCUMENT_NEEDS;
    return { mode: isolate.mode, network: used.includes(REQUESTING_GLOBAL) };
  } catch {
    // Code that cannot be parsed runs in a document, where it fails with the error message of the browser.
    return DOCUMENT_NEEDS;
  }
}

/**
 * Returns the globals that the code uses. Members of `performance` that an isolate has are returned as
 * `performance.now`, for example.
 */
function findUndeclaredNames(program: Program): string[] {
  const members = new Map<unknown, string>();
  fullAncestor(program, (node) => {
    const { type, computed, object, property } = node as MemberExpression;
    if (type !== "MemberExpression" || computed || object.type !== "Identifier" || property.type !== "Identifier")
      return;
    const name = `${object.name}.${property.name}`;
    if (PARTIAL_MEMBERS.includes(name)) members.set(object, name);
  });
  const { globalScope } = analyze(program as Parameters<typeof analyze>[0], {
    ecmaVersion: 2024,
    sourceType: "script",
  });
  return globalScope!.through.map(({ identifier }) => members.get(identifier) ?? identifier.name);
}

/**
 * True if the code may use globals without their names: through modules, through `this` as the global object, or through
 * functions that are created from text.
 */
function mayUseUnnamedGlobals(program: Program): boolean {
  let isReached = false;
  fullAncestor(program, (node, _state, ancestors) => {
    isReached ||= reachesGlobals(node as AnyNode, ancestors as AnyNode[]);
  });
  return isReached;
}

function reachesGlobals(node: AnyNode, ancestors: readonly AnyNode[]): boolean {
  switch (node.type) {
    case "ImportExpression":
    case "WithStatement":
      return true;
    case "ThisExpression":
      return !isObjectThis(ancestors);
    case "Literal":
      return node.value === "constructor";
    case "MemberExpression":
      return !node.computed && node.property.type === "Identifier" && node.property.name === "constructor";
    case "ObjectPattern":
      return node.properties.some(
        (property) => property.type === "Property" && propertyKeyOf(property) === "constructor",
      );
    default:
      return false;
  }
}

function propertyKeyOf({ key }: Property | AssignmentProperty): unknown {
  if (key.type === "Identifier") return key.name;
  return key.type === "Literal" ? key.value : undefined;
}

/** True if `this` cannot be the global object, because it is in a class or in a method of an object. */
function isObjectThis(ancestors: readonly AnyNode[]): boolean {
  const index = ancestors.findLastIndex(
    ({ type }) => type === "FunctionDeclaration" || type === "FunctionExpression" || type === "ClassBody",
  );
  if (index < 1) return false;
  if (ancestors[index]!.type === "ClassBody") return true;
  const holder = ancestors[index - 1]!;
  return (
    holder.type === "MethodDefinition" || (holder.type === "Property" && (holder.method || holder.kind !== "init"))
  );
}
