/**
 * Translates regular expressions of JavaScript to those of PostgreSQL. Rejects constructs that PostgreSQL interprets
 * differently. The translated groups do not capture, so that PostgreSQL needs no backtracking.
 */
import { type AST, RegExpParser } from "@eslint-community/regexpp";
import { ActionError } from "../../errors.js";
import { describeValue } from "../described.js";

const PATTERN_MAX_CHARACTERS = 200;
/**
 * Maximum repetition count that PostgreSQL allows.
 */
const REPEAT_MAX = 255;
/** Maximum size of an expression after all counted repetitions are written out, as PostgreSQL's automaton needs them. */
const COPIES_MAX = 1_000;

const LINE_ENDS = "\\n\\r\\u2028\\u2029";
const SPACE_CHARACTERS = "\\t-\\r \\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff";
const CHARACTER_SETS = { digit: "0-9", space: SPACE_CHARACTERS, word: "A-Za-z0-9_" } as const;
const PLAIN_CHARACTER = /[A-Za-z0-9 ]/;

/** Groups of letters that are all equal in JavaScript if case is ignored. In PostgreSQL only pairs of them are equal. */
const CASE_GROUPS = [
  ...["µΜμ", "Ǆǅǆ", "Ǉǈǉ", "Ǌǋǌ", "Ǳǲǳ", "\u0345Ιι\u1fbe", "Ββϐ", "Εεϵ", "Θθϑ", "Κκϰ", "Ππϖ", "Ρρϱ", "Σςσ", "Φφϕ"],
  ...["Вв\u1c80", "Дд\u1c81", "Оо\u1c82", "Сс\u1c83", "Тт\u1c84\u1c85", "Ъъ\u1c86", "Ѣѣ\u1c87", "\u1c88Ꙋꙋ", "Ṡṡẛ"],
];
const groupMembers = CASE_GROUPS.map((group) => [...group].map((letter) => letter.codePointAt(0)!));

/** Returns all letters of the groups that have a letter in the range. */
const likeRange = (min: number, max: number): string =>
  groupMembers
    .filter((members) => members.some((code) => code >= min && code <= max))
    .flat()
    .map(characterText)
    .join("");

/** Letters that equal a second letter in PostgreSQL if case is ignored, but not in JavaScript, such as ſ and s. */
const LONE_LETTERS = ["İi", "ıi", "ſs", "\u212ak", "\u2126ω", "\u212bå", "ϴθ", "ẞß"].map(
  ([letter, other]) => [letter!.codePointAt(0)!, other!] as const,
);

/** True if one of the elements of a class contains the letter. */
const coversCode = (elements: readonly AST.CharacterClassElement[], code: number): boolean =>
  elements.some((element) => {
    if (element.type === "Character") return element.value === code;
    if (element.type === "CharacterClassRange") return element.min.value <= code && code <= element.max.value;
    return element.type === "CharacterSet" && element.kind === "word" && code < 128;
  });

/** Returns the letters that a class matches only in PostgreSQL, because it contains one of LONE_LETTERS. */
function addedLetters(elements: readonly AST.CharacterClassElement[]): string[] {
  const letters = LONE_LETTERS.filter(([letter, other]) => {
    const letterCases = [other, other.toUpperCase()]
      .filter((text) => text.length === 1)
      .map((character) => character.codePointAt(0)!);
    const group = groupMembers.find((members) => members.includes(letterCases[0]!)) ?? [];
    return coversCode(elements, letter) && ![...letterCases, ...group].some((code) => coversCode(elements, code));
  });
  return [...new Set(letters.map(([, other]) => characterText(other.codePointAt(0)!)))];
}

/** Pattern for PostgreSQL. If `ignoreCase` is true, the query must use UNICODE_COLLATION. */
export interface TranslatedPattern {
  pattern: string;
  ignoreCase: boolean;
}

class UntranslatableError extends Error {}

const refuseExpression = (feature: string): never => {
  throw new UntranslatableError(`${feature}, which PostgreSQL interprets differently`);
};

function characterText(code: number): string {
  if (code === 0) return refuseExpression("U+0000");
  if (code >= 0xd800 && code <= 0xdfff) return refuseExpression("a lone surrogate");
  const text = String.fromCodePoint(code);
  if (PLAIN_CHARACTER.test(text)) return text;
  return code > 0xffff ? `\\U${code.toString(16).padStart(8, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

function classElement(element: AST.CharacterClassElement, ignoreCase: boolean): string {
  const alikeLetters = (min: number, max: number) => (ignoreCase ? likeRange(min, max) : "");
  if (element.type === "Character") return characterText(element.value) + alikeLetters(element.value, element.value);
  if (element.type === "CharacterClassRange") {
    const [min, max] = [element.min.value, element.max.value];
    return `${characterText(min)}-${characterText(max)}${alikeLetters(min, max)}`;
  }
  if (element.type !== "CharacterSet" || element.kind === "property") return refuseExpression("a property class");
  return element.negate ? refuseExpression(`${element.raw} within brackets`) : CHARACTER_SETS[element.kind];
}

function characterClass(node: AST.CharacterClass, ignoreCase: boolean): string {
  if (node.elements.length === 0) return node.negate ? "." : "(?!)";
  const elements = node.elements as AST.CharacterClassElement[];
  const writtenText = `[${node.negate ? "^" : ""}${elements.map((element) => classElement(element, ignoreCase)).join("")}]`;
  const added = ignoreCase ? addedLetters(elements) : [];
  if (added.length === 0) return writtenText;
  return node.negate ? `(?:${added.join("|")}|${writtenText})` : `(?:(?!${added.join("|")})${writtenText})`;
}

function characterSet(node: AST.CharacterSet, dotAll: boolean): string {
  if (node.kind === "any") return dotAll ? "." : `[^${LINE_ENDS}]`;
  if (node.kind === "property") return refuseExpression(node.raw);
  return `[${node.negate ? "^" : ""}${CHARACTER_SETS[node.kind]}]`;
}

/** Translates one pattern, and counts its size with all repetitions written out (COPIES_MAX). */
class PatternTranslation {
  private copies = 0;

  constructor(
    private readonly dotAll: boolean,
    private readonly ignoreCase: boolean,
  ) {}

  alternatives(nodes: readonly AST.Alternative[], factor: number): string {
    return nodes.map(({ elements }) => this.sequence(elements, factor)).join("|");
  }

  private sequence(elements: readonly AST.Element[], factor: number): string {
    let writtenText = "";
    for (let at = 0; at < elements.length; at += 1) {
      const [element, next] = [elements[at]!, elements[at + 1]];
      const pair =
        element.type === "Character" && next?.type === "Character" && isSurrogatePair(element.value, next.value);
      // JavaScript sees two surrogates, PostgreSQL one character.
      if (pair) at += 1;
      writtenText += pair ? characterText(codePointOf(element.value, next.value)) : this.element(element, factor);
    }
    return writtenText;
  }

  private element(node: AST.Element, factor: number): string {
    this.copies += factor;
    if (this.copies > COPIES_MAX) throw new UntranslatableError("too many nested repetitions");
    if (node.type === "Character") {
      const loneLetter = this.ignoreCase && LONE_LETTERS.find(([letter]) => letter === node.value);
      if (loneLetter) return `(?:(?!${characterText(loneLetter[1].codePointAt(0)!)})${characterText(node.value)})`;
      const alikeLetters = this.ignoreCase ? likeRange(node.value, node.value) : "";
      return alikeLetters === "" ? characterText(node.value) : `[${alikeLetters}]`;
    }
    if (node.type === "CharacterSet") return characterSet(node, this.dotAll);
    if (node.type === "CharacterClass") return characterClass(node, this.ignoreCase);
    if (node.type === "Group" || node.type === "CapturingGroup") {
      if (node.type === "Group" && node.modifiers) return refuseExpression("a group with flags");
      return `(?:${this.alternatives(node.alternatives, factor)})`;
    }
    if (node.type === "Quantifier") return this.quantifier(node, factor);
    if (node.type === "Assertion") return this.assertion(node, factor);
    return refuseExpression(node.type === "Backreference" ? "a backreference" : node.type);
  }

  private quantifier({ element, min, max }: AST.Quantifier, factor: number): string {
    const maxRepeats = max === Number.POSITIVE_INFINITY ? min + 1 : max;
    if (maxRepeats > REPEAT_MAX) throw new UntranslatableError(`a count above ${REPEAT_MAX}`);
    if (element.type === "Assertion") return refuseExpression("a repeated assertion");
    const inner = this.element(element, factor * Math.max(1, maxRepeats));
    return `(?:${inner}){${min},${max === Number.POSITIVE_INFINITY ? "" : max}}`;
  }

  private assertion(node: AST.Assertion, factor: number): string {
    if (node.kind === "start") return "^";
    if (node.kind === "end") return "$";
    if (node.kind === "lookahead")
      return `(?${node.negate ? "!" : "="}${this.alternatives(node.alternatives, factor)})`;
    if (node.kind === "lookbehind") return refuseExpression("a lookbehind");
    if (node.kind !== "word") return refuseExpression("an assertion");
    const [before, after] = ["(?<![A-Za-z0-9_])", "(?![A-Za-z0-9_])"];
    const [word, behind] = ["(?=[A-Za-z0-9_])", "(?<=[A-Za-z0-9_])"];
    return node.negate ? `(?:${behind}${word}|${before}${after})` : `(?:${before}${word}|${behind}${after})`;
  }
}

const isSurrogatePair = (high: number, low: number) =>
  high >= 0xd800 && high <= 0xdbff && low >= 0xdc00 && low <= 0xdfff;
const codePointOf = (high: number, low: number) => (high - 0xd800) * 0x400 + (low - 0xdc00) + 0x10000;

const expressionParser = new RegExpParser({ ecmaVersion: 2025 });

/** @throws REQUEST_INVALID with the path of the field and the unsupported construct */
export function translatePattern(pattern: unknown, flags: unknown, fieldPath: string): TranslatedPattern {
  if (typeof pattern !== "string" || pattern.length > PATTERN_MAX_CHARACTERS) {
    const expected = `a regular expression of at most ${PATTERN_MAX_CHARACTERS} characters`;
    throw new ActionError("REQUEST_INVALID", `${fieldPath}.$regex must be ${expected} (got ${describeValue(pattern)})`);
  }
  if (flags !== undefined && (typeof flags !== "string" || !/^(?!.*(.).*\1)[is]*$/.test(flags))) {
    throw new ActionError(
      "REQUEST_INVALID",
      `${fieldPath}.$options can contain only the flags i and s (got ${describeValue(flags)})`,
    );
  }
  try {
    const tree = expressionParser.parsePattern(pattern, undefined, undefined, { unicode: false });
    const ignoreCase = flags?.includes("i") ?? false;
    const writtenText = new PatternTranslation(flags?.includes("s") ?? false, ignoreCase).alternatives(
      tree.alternatives,
      1,
    );
    // Without the outer group, PostgreSQL would treat a leading `***:` or `(?` as a directive.
    return { pattern: `(?:${writtenText})`, ignoreCase };
  } catch (error) {
    const reason = error instanceof UntranslatableError ? `contains ${error.message}` : "is not a regular expression";
    throw new ActionError("REQUEST_INVALID", `${fieldPath}.$regex ${reason}: ${describeValue(pattern)}`);
  }
}
