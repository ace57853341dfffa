/**
 * Translates JavaScript regular expressions to PostgreSQL's, or rejects constructs that PostgreSQL interprets differently. The translation
 * has no capturing groups: PostgreSQL then matches without backtracking.
 */
import { type AST, RegExpParser } from "@eslint-community/regexpp";
import { ActionError } from "../../errors.js";
import { describeValue } from "../describe-value.js";

const PATTERN_MAX_CHARACTERS = 200;
/** Maximum repetition count in `{n}` or `{n,m}` that PostgreSQL allows. */
const REPETITIONS_MAX = 255;
/** Maximum number of elements. `x{3}` counts as three, because PostgreSQL's automaton has a copy for each repetition. */
const EXPANDED_SIZE_MAX = 1_000;

const LINE_TERMINATORS = "\\n\\r\\u2028\\u2029";
const SPACE_CHARACTERS = "\\t-\\r \\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff";
const CHARACTER_SETS = { digit: "0-9", space: SPACE_CHARACTERS, word: "A-Za-z0-9_" } as const;
const UNESCAPED_CHARACTER_PATTERN = /[A-Za-z0-9 ]/;

/** Groups of letters that are equal for JavaScript if it ignores case. PostgreSQL treats only some pairs of a group as equal. */
const EQUAL_LETTER_GROUPS = [
  ...["µΜμ", "Ǆǅǆ", "Ǉǈǉ", "Ǌǋǌ", "Ǳǲǳ", "\u0345Ιι\u1fbe", "Ββϐ", "Εεϵ", "Θθϑ", "Κκϰ", "Ππϖ", "Ρρϱ", "Σςσ", "Φφϕ"],
  ...["Вв\u1c80", "Дд\u1c81", "Оо\u1c82", "Сс\u1c83", "Тт\u1c84\u1c85", "Ъъ\u1c86", "Ѣѣ\u1c87", "\u1c88Ꙋꙋ", "Ṡṡẛ"],
];
const EQUAL_LETTER_GROUP_CODES = EQUAL_LETTER_GROUPS.map((group) => [...group].map((letter) => letter.codePointAt(0)!));

/** Returns all letters of each group that has a letter from code point `min` to `max`. */
const listEqualLetters = (min: number, max: number): string =>
  EQUAL_LETTER_GROUP_CODES.filter((members) => members.some((code) => code >= min && code <= max))
    .flat()
    .map(escapeCharacter)
    .join("");

/** Pairs of letters, such as ſ and s, that are equal for PostgreSQL if it ignores case, but not for JavaScript. */
const POSTGRES_ONLY_PAIRS = ["İi", "ıi", "ſs", "\u212ak", "\u2126ω", "\u212bå", "ϴθ", "ẞß"].map(
  ([letter, other]) => [letter!.codePointAt(0)!, other!] as const,
);

const classContainsCode = (elements: readonly AST.CharacterClassElement[], code: number): boolean =>
  elements.some((element) => {
    if (element.type === "Character") return element.value === code;
    if (element.type === "CharacterClassRange") return element.min.value <= code && code <= element.max.value;
    return element.type === "CharacterSet" && element.kind === "word" && code < 128;
  });

/** Returns letters that the class would match only in PostgreSQL, because of POSTGRES_ONLY_PAIRS. */
function findExtraLetters(elements: readonly AST.CharacterClassElement[]): string[] {
  const letters = POSTGRES_ONLY_PAIRS.filter(([letter, other]) => {
    const letterCases = [other, other.toUpperCase()]
      .filter((text) => text.length === 1)
      .map((character) => character.codePointAt(0)!);
    const group = EQUAL_LETTER_GROUP_CODES.find((members) => members.includes(letterCases[0]!)) ?? [];
    return (
      classContainsCode(elements, letter) &&
      ![...letterCases, ...group].some((code) => classContainsCode(elements, code))
    );
  });
  return [...new Set(letters.map(([, other]) => escapeCharacter(other.codePointAt(0)!)))];
}

/** Regular expression for PostgreSQL. If `ignoreCase` is true, the query must use UNICODE_COLLATION. */
export interface PostgresRegExp {
  pattern: string;
  ignoreCase: boolean;
}

/**
 * Error for a construct that cannot be translated. The message is a noun phrase that `translateRegExpToPostgres` writes after "contains".
 */
class UntranslatableError extends Error {}

const rejectExpression = (feature: string): never => {
  throw new UntranslatableError(`${feature}, which PostgreSQL and JavaScript interpret differently`);
};

function escapeCharacter(code: number): string {
  if (code === 0) return rejectExpression("U+0000");
  if (code >= 0xd800 && code <= 0xdfff) return rejectExpression("a lone surrogate");
  const text = String.fromCodePoint(code);
  if (UNESCAPED_CHARACTER_PATTERN.test(text)) return text;
  return code > 0xffff ? `\\U${code.toString(16).padStart(8, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

function translateClassElement(element: AST.CharacterClassElement, ignoreCase: boolean): string {
  const listIgnoredCaseLetters = (min: number, max: number) => (ignoreCase ? listEqualLetters(min, max) : "");
  if (element.type === "Character")
    return escapeCharacter(element.value) + listIgnoredCaseLetters(element.value, element.value);
  if (element.type === "CharacterClassRange") {
    const [min, max] = [element.min.value, element.max.value];
    return `${escapeCharacter(min)}-${escapeCharacter(max)}${listIgnoredCaseLetters(min, max)}`;
  }
  if (element.type !== "CharacterSet" || element.kind === "property") return rejectExpression("a property class");
  return element.negate ? rejectExpression(`${element.raw} within brackets`) : CHARACTER_SETS[element.kind];
}

function translateCharacterClass(node: AST.CharacterClass, ignoreCase: boolean): string {
  if (node.elements.length === 0) return node.negate ? "." : "(?!)";
  const elements = node.elements as AST.CharacterClassElement[];
  const classText = `[${node.negate ? "^" : ""}${elements.map((element) => translateClassElement(element, ignoreCase)).join("")}]`;
  const extraLetters = ignoreCase ? findExtraLetters(elements) : [];
  if (extraLetters.length === 0) return classText;
  return node.negate ? `(?:${extraLetters.join("|")}|${classText})` : `(?:(?!${extraLetters.join("|")})${classText})`;
}

function translateCharacterSet(node: AST.CharacterSet, dotAll: boolean): string {
  if (node.kind === "any") return dotAll ? "." : `[^${LINE_TERMINATORS}]`;
  if (node.kind === "property") return rejectExpression(node.raw);
  return `[${node.negate ? "^" : ""}${CHARACTER_SETS[node.kind]}]`;
}

/** Translates one regular expression. Rejects more than EXPANDED_SIZE_MAX elements, with all repetitions written out. */
class PatternTranslator {
  private elementCount = 0;

  constructor(
    private readonly dotAll: boolean,
    private readonly ignoreCase: boolean,
  ) {}

  translateAlternatives(nodes: readonly AST.Alternative[], factor: number): string {
    return nodes.map(({ elements }) => this.translateSequence(elements, factor)).join("|");
  }

  private translateSequence(elements: readonly AST.Element[], factor: number): string {
    let pattern = "";
    for (let at = 0; at < elements.length; at += 1) {
      const [element, next] = [elements[at]!, elements[at + 1]];
      const isPair =
        element.type === "Character" && next?.type === "Character" && isSurrogatePair(element.value, next.value);
      // A surrogate pair is one character in PostgreSQL, so its second half is skipped.
      if (isPair) at += 1;
      pattern += isPair
        ? escapeCharacter(combineSurrogates(element.value, next.value))
        : this.translateElement(element, factor);
    }
    return pattern;
  }

  private translateElement(node: AST.Element, factor: number): string {
    this.elementCount += factor;
    if (this.elementCount > EXPANDED_SIZE_MAX)
      throw new UntranslatableError(`more than ${EXPANDED_SIZE_MAX} elements, where x{3} counts as three elements`);
    if (node.type === "Character") {
      const postgresOnlyPair = this.ignoreCase && POSTGRES_ONLY_PAIRS.find(([letter]) => letter === node.value);
      if (postgresOnlyPair)
        return `(?:(?!${escapeCharacter(postgresOnlyPair[1].codePointAt(0)!)})${escapeCharacter(node.value)})`;
      const equalLetters = this.ignoreCase ? listEqualLetters(node.value, node.value) : "";
      return equalLetters === "" ? escapeCharacter(node.value) : `[${equalLetters}]`;
    }
    if (node.type === "CharacterSet") return translateCharacterSet(node, this.dotAll);
    if (node.type === "CharacterClass") return translateCharacterClass(node, this.ignoreCase);
    if (node.type === "Group" || node.type === "CapturingGroup") {
      if (node.type === "Group" && node.modifiers) return rejectExpression("a group with flags");
      return `(?:${this.translateAlternatives(node.alternatives, factor)})`;
    }
    if (node.type === "Quantifier") return this.translateQuantifier(node, factor);
    if (node.type === "Assertion") return this.translateAssertion(node, factor);
    return rejectExpression(node.type === "Backreference" ? "a backreference" : node.type);
  }

  private translateQuantifier({ element, min, max }: AST.Quantifier, factor: number): string {
    const maxRepeats = max === Number.POSITIVE_INFINITY ? min + 1 : max;
    if (maxRepeats > REPETITIONS_MAX) throw new UntranslatableError(`a repetition count above ${REPETITIONS_MAX}`);
    if (element.type === "Assertion") return rejectExpression("a repeated assertion");
    const inner = this.translateElement(element, factor * Math.max(1, maxRepeats));
    return `(?:${inner}){${min},${max === Number.POSITIVE_INFINITY ? "" : max}}`;
  }

  private translateAssertion(node: AST.Assertion, factor: number): string {
    if (node.kind === "start") return "^";
    if (node.kind === "end") return "$";
    if (node.kind === "lookahead")
      return `(?${node.negate ? "!" : "="}${this.translateAlternatives(node.alternatives, factor)})`;
    if (node.kind === "lookbehind") return rejectExpression("a lookbehind");
    if (node.kind !== "word") return rejectExpression("an assertion");
    const [notAfterWord, notBeforeWord] = ["(?<![A-Za-z0-9_])", "(?![A-Za-z0-9_])"];
    const [beforeWord, afterWord] = ["(?=[A-Za-z0-9_])", "(?<=[A-Za-z0-9_])"];
    return node.negate
      ? `(?:${afterWord}${beforeWord}|${notAfterWord}${notBeforeWord})`
      : `(?:${notAfterWord}${beforeWord}|${afterWord}${notBeforeWord})`;
  }
}

const isSurrogatePair = (high: number, low: number) =>
  high >= 0xd800 && high <= 0xdbff && low >= 0xdc00 && low <= 0xdfff;
const combineSurrogates = (high: number, low: number) => (high - 0xd800) * 0x400 + (low - 0xdc00) + 0x10000;

const expressionParser = new RegExpParser({ ecmaVersion: 2025 });

/** Translates `$regex` with the flags in `$options`. @throws REQUEST_INVALID with the path of the field and the unsupported construct */
export function translateRegExpToPostgres(pattern: unknown, flags: unknown, fieldPath: string): PostgresRegExp {
  if (typeof pattern !== "string" || pattern.length > PATTERN_MAX_CHARACTERS) {
    const expected = `a regular expression of at most ${PATTERN_MAX_CHARACTERS} characters`;
    throw new ActionError("REQUEST_INVALID", `${fieldPath}.$regex must be ${expected} (got ${describeValue(pattern)})`);
  }
  if (flags !== undefined && (typeof flags !== "string" || !/^(?!.*(.).*\1)[is]*$/.test(flags))) {
    throw new ActionError(
      "REQUEST_INVALID",
      `${fieldPath}.$options can contain only the flags i and s, each once (got ${describeValue(flags)})`,
    );
  }
  try {
    const tree = expressionParser.parsePattern(pattern, undefined, undefined, { unicode: false });
    const ignoreCase = flags?.includes("i") ?? false;
    const translatedText = new PatternTranslator(flags?.includes("s") ?? false, ignoreCase).translateAlternatives(
      tree.alternatives,
      1,
    );
    // Without the group, PostgreSQL would read `***:` or `(?` at the start as a directive.
    return { pattern: `(?:${translatedText})`, ignoreCase };
  } catch (error) {
    const problem = error instanceof UntranslatableError ? `contains ${error.message}` : "is not a regular expression";
    throw new ActionError("REQUEST_INVALID", `${fieldPath}.$regex ${problem} (got ${describeValue(pattern)})`);
  }
}
