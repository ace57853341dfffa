/**
 * The least that code needs around it: judged by the names that it uses, since it may be given no others. Parses, and never runs a
 * character.
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
import globals from "globals";
import { LRUCache } from "lru-cache";
import {
  FETCH_GLOBALS,
  LANGUAGE_GLOBALS,
  NAVIGATOR_MEMBERS,
  NETWORK_GLOBALS,
  PERFORMANCE_MEMBERS,
  WORKER_GLOBALS,
} from "./pages/worker-globals.js";
import type { RealmKind } from "./run.js";

/** Looking at code costs time that grows faster than the code, and every other run waits for it. */
const LOOKED_AT_MAX_CHARACTERS = 16_384;
/** What packages define, which say themselves where they can be. */
const PACKAGES = "Svc";
/** Ways to names that do not stand in the code. */
const DYNAMIC = ["globalThis", "eval", "eval()", "Function"];
/** Of this object a worker has a part: code names the member that it wants of it, or wants it whole. */
const NAVIGATOR = "navigator";
const OF_NAVIGATOR = NAVIGATOR_MEMBERS.map((member) => `${NAVIGATOR}.${member}`);
/** Of this one a realm has, where a worker has it whole. */
const OF_PERFORMANCE = PERFORMANCE_MEMBERS.map((member) => `performance.${member}`);

/** What code may name in each, the cheapest first. */
const KNOWN = (
  [
    ["language", LANGUAGE_GLOBALS],
    ["fetch", [...OF_PERFORMANCE, ...FETCH_GLOBALS]],
    ["worker", [PACKAGES, ...OF_NAVIGATOR, ...OF_PERFORMANCE, ...WORKER_GLOBALS]],
    ["network", [PACKAGES, ...OF_NAVIGATOR, ...OF_PERFORMANCE, ...NETWORK_GLOBALS]],
  ] as const
).map(([kind, globals]) => ({
  kind,
  names: new Set(globals.filter((name) => ![...DYNAMIC, NAVIGATOR].includes(name))),
}));
/** Where packages are evaluated. */
const WITH_PACKAGES = KNOWN.filter(({ kind }) => kind === "worker" || kind === "network");

/** The realms in which the code finds every global that it names, the least first, but for those that are `given`: packages define them. */
export type RealmsOfCode = (code: string, given?: readonly string[]) => readonly RealmKind[];

/** Names of a document's that the list of the browser's names lacks. */
const FURTHER = /webkit|^(AnimationTrigger|BeforeInstallPromptEvent|captureEvents|releaseEvents)$/i;
const IDENTIFIER = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u;

/** Whether a document may have it: another name is found nowhere, a package of Node's, say. What is no name at all may be anything. */
export function isOfDocuments(name: string): boolean {
  return !IDENTIFIER.test(name) || Object.hasOwn(globals.browser, name) || FURTHER.test(name);
}

/** Of these, those that Chromium has: a text may spell any number of others. */
const FURTHER_OF_CHROMIUM = new Set(
  (
    "webkitURL webkitRTCPeerConnection webkitMediaStream WebKitMutationObserver WebKitCSSMatrix webkitSpeechRecognitionError " +
    "webkitSpeechRecognitionEvent webkitSpeechRecognition webkitSpeechGrammar webkitSpeechGrammarList webkitCancelAnimationFrame " +
    "webkitRequestAnimationFrame webkitRequestFileSystem webkitResolveLocalFileSystemURL onwebkitanimationend onwebkitanimationiteration " +
    "onwebkitanimationstart onwebkittransitionend AnimationTrigger BeforeInstallPromptEvent captureEvents releaseEvents"
  ).split(" "),
);

/** A word, or an escape, which begins none. */
const WORD = /\\.|[A-Za-z_$][\w$]*/g;

/** Texts of which that is remembered. */
const SPELLED_MAX = 1_000;
const spelled = new LRUCache<string, readonly string[]>({ max: SPELLED_MAX });

/** The names of a document's that a script spells, in code, in a text or in a comment. `content`: what names the text for good, if anything does. */
export function documentNamesIn(source: string, content?: string): readonly string[] {
  const known = content === undefined ? undefined : spelled.get(content);
  if (known !== undefined) return known;
  const words = [...new Set(source.match(WORD))];
  const names = words.filter((word) => Object.hasOwn(globals.browser, word) || FURTHER_OF_CHROMIUM.has(word));
  if (content !== undefined) spelled.set(content, names);
  return names;
}

/** Libraries ask what there is around them: the ways to names that do not stand in them, and names that no document has, are no need. */
const neededOf = (names: readonly string[]) => names.filter((name) => !DYNAMIC.includes(name) && isOfDocuments(name));

/** The least that holds a script which uses those names of its surroundings. */
export function realmOfNames(names: readonly string[]): RealmKind {
  const needed = neededOf(names);
  return WITH_PACKAGES.find(({ names: known }) => needed.every((name) => known.has(name)))?.kind ?? "document";
}

/** Whether such a script is held by a realm with FETCH_GLOBALS. There `eval` does not see what is around the call. */
export function fitsFetchRealm(names: readonly string[]): boolean {
  return !names.includes("eval") && neededOf(names).every((name) => FETCH_GLOBALS.includes(name));
}

/** What is remembered of judged code: what was asked for last, in characters of code. */
const REMEMBERED_CHARACTERS = 16 * 1024 * 1024;

export function createRealmsOfCode(rememberedCharacters = REMEMBERED_CHARACTERS): RealmsOfCode {
  const judged = new LRUCache<string, readonly RealmKind[]>({
    maxSize: rememberedCharacters,
    sizeCalculation: (_, key) => key.length + 1,
  });

  return (code, given = []) => {
    // No code that defines a function is an array of texts: what one app is given is not taken for another's first line.
    const key = given.length === 0 ? code : JSON.stringify([...given, code]);
    const known = judged.get(key);
    if (known !== undefined) return known;
    const kinds: readonly RealmKind[] = [...judge(code, given), "document"];
    judged.set(key, kinds);
    return kinds;
  };
}

/** Those without a document. */
function judge(code: string, given: readonly string[]): RealmKind[] {
  if (code.length > LOOKED_AT_MAX_CHARACTERS) return [];
  try {
    const program = parse(code, { ecmaVersion: "latest", sourceType: "script", ranges: true });
    if (reachesBeyond(program)) return [];
    const used = undeclaredNames(program).filter((name) => !given.includes(name));
    return KNOWN.filter(({ names }) => used.every((name) => names.has(name))).map(({ kind }) => kind);
  } catch {
    // What cannot be read is not judged; the run says what is wrong with it.
    return [];
  }
}

/** `navigator.userAgent` is as good as a name of its own. */
function undeclaredNames(program: Program): string[] {
  const members = new Map<unknown, string>();
  fullAncestor(program, (node) => {
    const { type, computed, object, property } = node as MemberExpression;
    if (type !== "MemberExpression" || computed || object.type !== "Identifier" || property.type !== "Identifier")
      return;
    const name = `${object.name}.${property.name}`;
    if (object.name === NAVIGATOR || OF_PERFORMANCE.includes(name)) members.set(object, name);
  });
  const { globalScope } = analyze(program as Parameters<typeof analyze>[0], {
    ecmaVersion: 2024,
    sourceType: "script",
  });
  return globalScope!.through.map(({ identifier }) => members.get(identifier) ?? identifier.name);
}

/** Whether the code reaches what no name in it stands for: modules, the global object as `this`, functions made of text. */
function reachesBeyond(program: Program): boolean {
  let found = false;
  fullAncestor(program, (node, _state, ancestors) => {
    found ||= isDoor(node as AnyNode, ancestors as AnyNode[]);
  });
  return found;
}

function isDoor(node: AnyNode, ancestors: readonly AnyNode[]): boolean {
  switch (node.type) {
    case "ImportExpression":
    case "WithStatement":
      return true;
    case "ThisExpression":
      return !isOwnThis(ancestors);
    case "Literal":
      return node.value === "constructor";
    case "MemberExpression":
      return !node.computed && node.property.type === "Identifier" && node.property.name === "constructor";
    case "ObjectPattern":
      return node.properties.some((property) => property.type === "Property" && keyOf(property) === "constructor");
    default:
      return false;
  }
}

function keyOf({ key }: Property | AssignmentProperty): unknown {
  if (key.type === "Identifier") return key.name;
  return key.type === "Literal" ? key.value : undefined;
}

/** Whether a `this` is an object's own: in a class, or in a method of an object. */
function isOwnThis(ancestors: readonly AnyNode[]): boolean {
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
