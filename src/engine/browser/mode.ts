/** Chooses the cheapest sandbox mode that has all globals of the code (globals.ts). Parses the code, and never evaluates it. */
import { type AnyNode, type Identifier, type MethodDefinition, type Program, parse } from "acorn";
import { fullAncestor } from "acorn-walk";
import { analyze } from "eslint-scope";
import browserGlobals from "globals";
import { LRUCache } from "lru-cache";
import { ISOLATE_GLOBALS, NETWORK_ISOLATE_GLOBALS, REQUEST_SENDING_GLOBAL } from "./globals.js";
import { findReadMembers, needsMoreThanNetworkIsolate } from "./isolate-limits.js";
import type { EvaluationMode } from "./run.js";

/** Longer code runs in a document (an empty page), because its analysis would block the process for too long. */
const ANALYZED_CODE_MAX_CHARACTERS = 16_384;
/** With these names, code can reach any global without naming it. */
const DYNAMIC_CODE_NAMES = ["globalThis", "eval", "eval()", "Function"];
const THIS_SCOPE_TYPES = ["FunctionDeclaration", "FunctionExpression", "ClassBody"];

const removeDynamicCodeNames = (names: readonly string[]) =>
  new Set(names.filter((name) => !DYNAMIC_CODE_NAMES.includes(name)));
const ISOLATE_MODES = [
  { mode: "isolate", names: removeDynamicCodeNames(ISOLATE_GLOBALS) },
  { mode: "network-isolate", names: removeDynamicCodeNames([...NETWORK_ISOLATE_GLOBALS, "performance"]) },
] as const;

interface CodeNeeds {
  mode: EvaluationMode;
  network: boolean;
}

const DOCUMENT_NEEDS: CodeNeeds = { mode: "document", network: true };

/** Chromium's globals that are missing in the npm package `globals`. */
const ADDITIONAL_CHROMIUM_GLOBALS = new Set(
  (
    "webkitURL webkitRTCPeerConnection webkitMediaStream WebKitMutationObserver WebKitCSSMatrix webkitSpeechRecognitionError " +
    "webkitSpeechRecognitionEvent webkitSpeechRecognition webkitSpeechGrammar webkitSpeechGrammarList webkitCancelAnimationFrame " +
    "webkitRequestAnimationFrame webkitRequestFileSystem webkitResolveLocalFileSystemURL onwebkitanimationend onwebkitanimationiteration " +
    "onwebkitanimationstart onwebkittransitionend AnimationTrigger BeforeInstallPromptEvent captureEvents releaseEvents FinalizationRegistry"
  ).split(" "),
);

const isListedGlobal = (name: string): boolean =>
  Object.hasOwn(browserGlobals.browser, name) || ADDITIONAL_CHROMIUM_GLOBALS.has(name);

const IDENTIFIER_PATTERN = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u;

/** True if a document may have a global of this name, or if the text is no identifier. False for others, such as globals of Node. */
export const isDocumentGlobal = (name: string): boolean =>
  !IDENTIFIER_PATTERN.test(name) || isListedGlobal(name) || /webkit/i.test(name);

/** Matches a word or an escape sequence, so that the `n` of `\n` does not start a word. */
const CODE_WORD_PATTERN = /\\.|[A-Za-z_$][\w$]*/g;

const CACHED_TEXTS_MAX = 1_000;
const namesByCacheKey = new LRUCache<string, readonly string[]>({ max: CACHED_TEXTS_MAX });

/** Returns the names of document globals that occur in a script's text. Without `cacheKey`, nothing is cached. */
export function findDocumentGlobalNames(source: string, cacheKey?: string): readonly string[] {
  const knownNames = cacheKey === undefined ? undefined : namesByCacheKey.get(cacheKey);
  if (knownNames !== undefined) return knownNames;
  const names = [...new Set(source.match(CODE_WORD_PATTERN))].filter(isListedGlobal);
  if (cacheKey !== undefined) namesByCacheKey.set(cacheKey, names);
  return names;
}

/**
 * Returns the mode and the network access that code with the globals `names` needs. Ignores names that no browser has. `eval` needs a
 * document, because its text may use any global.
 */
export function computeCodeNeedsFromGlobals(names: readonly string[]): CodeNeeds {
  const needed = names.filter((name) => !DYNAMIC_CODE_NAMES.includes(name) && isDocumentGlobal(name));
  if (names.includes("eval") || !needed.every((name) => NETWORK_ISOLATE_GLOBALS.includes(name))) return DOCUMENT_NEEDS;
  return { mode: "network-isolate", network: needed.includes(REQUEST_SENDING_GLOBAL) };
}

const NEEDS_CACHE_MAX_CHARACTERS = 16 * 1024 * 1024;

export function createCodeNeedsFinder(cacheCharacters = NEEDS_CACHE_MAX_CHARACTERS) {
  const cache = new LRUCache<string, CodeNeeds>({
    maxSize: cacheCharacters,
    sizeCalculation: (_, key) => key.length + 1,
  });

  return (code: string, definedGlobals: readonly string[] = []): CodeNeeds => {
    // The code of an action is never a JSON array, so the two forms of keys are never equal.
    const key = definedGlobals.length === 0 ? code : JSON.stringify([...definedGlobals, code]);
    const needs = cache.get(key) ?? computeCodeNeeds(code, definedGlobals);
    cache.set(key, needs);
    return needs;
  };
}

function computeCodeNeeds(code: string, definedGlobals: readonly string[]): CodeNeeds {
  if (code.length > ANALYZED_CODE_MAX_CHARACTERS) return DOCUMENT_NEEDS;
  try {
    const program = parse(code, { ecmaVersion: "latest", sourceType: "script", ranges: true });
    if (hasNode(program, mayUseUnnamedGlobals)) return DOCUMENT_NEEDS;
    const undeclaredNames = findUndeclaredNames(program).filter((name) => !definedGlobals.includes(name));
    const isolateMode = ISOLATE_MODES.find(({ names }) => undeclaredNames.every((name) => names.has(name)));
    if (!isolateMode || (isolateMode.mode === "network-isolate" && hasNode(program, needsMoreThanNetworkIsolate)))
      return DOCUMENT_NEEDS;
    return { mode: isolateMode.mode, network: undeclaredNames.includes(REQUEST_SENDING_GLOBAL) };
  } catch {
    // Code with a syntax error runs in a document, where it fails with the error message of the browser.
    return DOCUMENT_NEEDS;
  }
}

/** Returns the names that the code uses but does not declare. */
function findUndeclaredNames(program: Program): string[] {
  const { globalScope } = analyze(program as Parameters<typeof analyze>[0], {
    ecmaVersion: 2024,
    sourceType: "script",
  });
  return globalScope!.through.map(({ identifier }) => identifier.name);
}

function hasNode(program: Program, test: (node: AnyNode, path: readonly AnyNode[]) => boolean): boolean {
  let isFound = false;
  fullAncestor(program, (node, _state, path) => {
    isFound ||= test(node as AnyNode, path as AnyNode[]);
  });
  return isFound;
}

/** True if the code may reach globals without their names: by `import()`, `with`, `this`, `super`, `constructor` or `getThis`. */
const mayUseUnnamedGlobals = (node: AnyNode, path: readonly AnyNode[]): boolean =>
  node.type === "ImportExpression" ||
  node.type === "WithStatement" ||
  ((node.type === "ThisExpression" || node.type === "Super") && !isThisHarmless(path)) ||
  findReadMembers(node).some((name) => name === "constructor" || name === "getThis");

/** True if `this` (or that of `super`) is not the global object, or if the code only uses a property of it that no global object has. */
function isThisHarmless(ancestors: readonly AnyNode[]): boolean {
  const index = ancestors.findLastIndex(({ type }) => THIS_SCOPE_TYPES.includes(type));
  if (index < 1) return false;
  const [parent, scope, member, memberKey] = ancestors.slice(index - 1) as [AnyNode, AnyNode, ...AnyNode[]];
  // The computed name of a class member is evaluated with the `this` outside of the class.
  if (scope.type === "ClassBody") return (member as MethodDefinition).key !== memberKey;
  if (parent.type !== "Property") return parent.type === "MethodDefinition";
  // Code can call the method of an object literal without the object. Its `this` is then the global object.
  const [reader, node] = ancestors.slice(-2) as [AnyNode, AnyNode];
  if (node.type === "Super" || reader.type !== "MemberExpression" || reader.computed) return false;
  const { name } = reader.property as Identifier;
  const isGlobal = isDocumentGlobal(name) || ISOLATE_GLOBALS.includes(name) || name in Object.prototype;
  return (parent.method || parent.kind !== "init") && reader.object === node && !isGlobal;
}
