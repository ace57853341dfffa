/**
 * Proves that each regular expression of src/ takes linear time, because one that backtracks over untrusted text blocks the process for all
 * apps. If the test rejects an expression, replace it by a parser, a scan, or an expression that cannot match the same characters in two
 * ways.
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type AnyNode, type Program, parse } from "acorn";
import { full } from "acorn-walk";
import { expect } from "chai";
import { stop, transform } from "esbuild";
import {
  type ExpressionSource,
  findExpressionFault,
  PROVEN_FILE,
  type ProvenExpressions,
  RECHECK_VERSION,
} from "./harness/recheck.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** Environment variable PROVE. `new` adds new proofs to the list of proven expressions; `all` also proves the listed ones again. */
const PROVE_MODE = process.env["PROVE"];
/** Text in place of each value that a template inserts into an expression. */
const SAMPLE_VALUE = "sample";

/** Allowed expressions without a proof, each with the reason. Read the top of this file before you add an expression. */
const UNPROVEN_EXPRESSIONS: Readonly<Record<string, string>> = {};

interface Expression extends ExpressionSource {
  file: string;
}

/** True if a file may contain an expression, judged by its text without import lines and lines that are only a comment. */
function mayContainExpression(file: string): boolean {
  const lines = readFileSync(join(ROOT, file), "utf8").split("\n");
  const code = lines.filter((line) => !/^\s*(?:\*|\/[/*])|\bfrom "/.test(line));
  return code.some((line) => /\/|RegExp|\.(?:match|matchAll|search)\(/.test(line));
}

const written = ({ source, flags }: ExpressionSource): string => `/${source}/${flags}`;

async function programOf(file: string): Promise<Program> {
  const tsconfigRaw = { compilerOptions: { experimentalDecorators: true, jsx: "react-jsx" as const } };
  const loader = file.endsWith("x") ? "tsx" : "ts";
  const { code } = await transform(readFileSync(join(ROOT, file), "utf8"), { loader, tsconfigRaw });
  return parse(code, { ecmaVersion: "latest", sourceType: "module" });
}

/** Returns the text of a string or template, with SAMPLE_VALUE for each inserted value; "" for a missing argument; null for other nodes. */
function textOf(node: AnyNode | undefined): string | null {
  if (node === undefined) return "";
  if (node.type === "Literal" && typeof node.value === "string") return node.value;
  return node.type === "TemplateLiteral" ? node.quasis.map(({ value }) => value.cooked).join(SAMPLE_VALUE) : null;
}

/** String methods that make a regular expression of a string argument. */
const EXPRESSION_METHODS = new Set(["match", "matchAll", "search"]);

/**
 * Returns the regular expressions of a file. `unreadable` describes each RegExp call whose text the test cannot read, and each string that
 * a method uses as an expression.
 */
async function expressionsOf(file: string): Promise<{ found: Expression[]; unreadable: string[] }> {
  const found: Expression[] = [];
  const unreadable: string[] = [];
  full(await programOf(file), (node) => {
    if (node.type === "Literal" && node.regex)
      found.push({ source: node.regex.pattern, flags: node.regex.flags, file });
    if (node.type !== "NewExpression" && node.type !== "CallExpression") return;
    const { callee } = node;
    const [first, second] = node.arguments as AnyNode[];
    if (callee.type === "Identifier" && callee.name === "RegExp") {
      const [source, flags] = [textOf(first), textOf(second)];
      if (source === null || flags === null) unreadable.push(`${file}: RegExp(…) of a value that is made elsewhere`);
      else found.push({ source, flags, file });
    }
    const method = callee.type === "MemberExpression" && callee.property.type === "Identifier" && callee.property.name;
    if (method && EXPRESSION_METHODS.has(method) && first !== undefined && textOf(first) !== null) {
      unreadable.push(`${file}: .${method}() of a string, which makes an expression of it`);
    }
  });
  return { found, unreadable };
}

function readProven(): Set<string> {
  const known = JSON.parse(readFileSync(PROVEN_FILE, "utf8")) as ProvenExpressions;
  return new Set(known.version === RECHECK_VERSION && PROVE_MODE !== "all" ? known.linear : []);
}

describe("regular expressions", () => {
  const files = globSync("src/**/*.{ts,tsx}", { cwd: ROOT }).filter((file) => !file.endsWith(".d.ts"));
  let all: { found: Expression[]; unreadable: string[] }[];
  let expressions: Map<string, Expression>;

  before(async () => {
    // Uses esbuild's asynchronous API, because transformSync would hang if other code in the process also uses esbuild.
    all = await Promise.all(files.filter(mayContainExpression).map(expressionsOf));
    expressions = new Map(all.flatMap(({ found }) => found).map((expression) => [written(expression), expression]));
  });
  after(() => stop());

  it("are all found in the source", () => {
    expect(all.flatMap(({ unreadable }) => unreadable)).to.deep.equal([]);
    expect(expressions.size).to.be.greaterThan(200);
  });

  it("take time in proportion to the text", () => {
    const proven = readProven();
    const faults: string[] = [];
    for (const [text, expression] of expressions) {
      if (proven.has(text) || text in UNPROVEN_EXPRESSIONS) continue;
      const fault = findExpressionFault(expression);
      if (fault === null) proven.add(text);
      else faults.push(`${expression.file}: ${text} is ${fault}`);
    }
    const linear = [...proven].filter((text) => expressions.has(text)).sort();
    if (PROVE_MODE) writeFileSync(PROVEN_FILE, `${JSON.stringify({ version: RECHECK_VERSION, linear }, null, 2)}\n`);
    expect(faults).to.deep.equal([]);
  }).timeout(600_000);

  it("have no exception that none of them needs", () => {
    expect(Object.keys(UNPROVEN_EXPRESSIONS).filter((text) => !expressions.has(text))).to.deep.equal([]);
  });

  it("are rejected if they are quadratic or worse", () => {
    for (const source of ["=+$", "^(?:a|\\s)*\\s*<b", "^(a+)+$", "\\s*,\\s*"]) {
      expect(findExpressionFault({ source, flags: "" }), source).not.to.equal(null);
    }
  });
});
