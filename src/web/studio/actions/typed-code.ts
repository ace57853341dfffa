/**
 * Lets TypeScript check an action's code with a type for the parameter of `execute`. It inserts a type comment into the compiler's copy of
 * the code, and corrects all positions by the comment's length.
 */
import { CONTEXT_TYPE } from "./code-types.js";

const INSERTED = `/** @type {${CONTEXT_TYPE}} */ `;

/** The parts of a syntax tree node that this module uses. */
interface Node {
  kind: number;
  name?: { text?: string };
  parameters?: readonly Node[];
  declarationList?: { declarations: readonly { name: { text?: string }; initializer?: Node }[] };
  getStart(): number;
}

/** The parts of the compiler that this module uses. */
export interface Compiler {
  createSourceFile(
    name: string,
    text: string,
    target: number,
    setParentNodes: boolean,
    kind: number,
  ): { statements: readonly Node[] };
  getJSDocType(node: Node): unknown;
  isFunctionLike(node: Node): boolean;
  ScriptTarget: { ESNext: number };
  ScriptKind: { JS: number };
}

/** The parts of Monaco's worker that this module uses. */
interface Worker {
  _getScriptText(file: string): string | undefined;
  _getModel(file: string): { version: number; getValue(): string } | null;
}

/** Returns the position of the parameter of `execute`. Returns null if there is none, or if the author has typed it. */
function parameterOf(ts: Compiler, code: string): number | null {
  const { statements } = ts.createSourceFile("code.js", code, ts.ScriptTarget.ESNext, true, ts.ScriptKind.JS);
  const functions = statements.flatMap((statement) => [
    ...(statement.name?.text === "execute" ? [statement] : []),
    ...(statement.declarationList?.declarations ?? []).flatMap(({ name, initializer }) =>
      name.text === "execute" && initializer ? [initializer] : [],
    ),
  ]);
  const parameter = functions.find((one) => ts.isFunctionLike(one))?.parameters?.[0];
  if (!parameter || ts.getJSDocType(parameter)) return null;
  const start = parameter.getStart();
  // A type comment is only valid after a parenthesis.
  return /\(\s*$/.test(code.slice(0, start)) ? start : null;
}

type Move = (offset: number) => number;

/** Returns a result of the compiler with its positions corrected for the author's code. Positions in other files do not change. */
function moved(answer: unknown, file: string, move: Move): unknown {
  if (Array.isArray(answer)) return answer.map((one) => moved(one, file, move));
  if (typeof answer !== "object" || answer === null) return answer;
  const {
    start,
    length,
    fileName,
    file: of,
  } = answer as {
    start?: unknown;
    length?: unknown;
    fileName?: string;
    file?: { fileName?: string };
  };
  const where = fileName ?? of?.fileName;
  if (where !== undefined && where !== file) return answer;
  const inner = Object.fromEntries(Object.entries(answer).map(([name, value]) => [name, moved(value, file, move)]));
  if (typeof start !== "number" || typeof length !== "number") return inner;
  return { ...inner, start: move(start), length: move(start + length) - move(start) };
}

/** Methods of the worker that receive a file name and perhaps a position. */
const ASKED = [
  "getSyntacticDiagnostics",
  "getSemanticDiagnostics",
  "getCompletionsAtPosition",
  "getCompletionEntryDetails",
  "getSignatureHelpItems",
  "getQuickInfoAtPosition",
  "getDocumentHighlights",
  "getNavigationTree",
  "findRenameLocations",
  "getRenameInfo",
] as const;

type Ask = (file: string, ...rest: unknown[]) => Promise<unknown>;

/** Returns Monaco's worker class with the corrected methods. @param Base Monaco's class, which has all methods of this list */
export function withTypedContext<Base extends new (...given: never[]) => object>(Base: Base, ts: Compiler): Base {
  const seen = new Map<string, { version: number; at: number | null }>();
  const base = Base.prototype as Worker & Record<string, Ask>;

  function insertionIn(worker: Worker, file: string): number | null {
    const model = worker._getModel(file);
    if (!model) return null;
    const known = seen.get(file);
    if (known?.version === model.version) return known.at;
    const at = parameterOf(ts, model.getValue());
    seen.set(file, { version: model.version, at });
    return at;
  }

  const Typed = class extends (Base as new (...given: never[]) => object) {
    _getScriptText(this: Worker, file: string): string | undefined {
      const text = base._getScriptText.call(this, file);
      const at = insertionIn(this, file);
      return text === undefined || at === null ? text : text.slice(0, at) + INSERTED + text.slice(at);
    }
  };
  for (const name of ASKED) {
    const ask: Ask = async function (this: Worker, file, ...rest) {
      const at = insertionIn(this, file);
      if (at === null) return base[name]!.call(this, file, ...rest);
      const inward: Move = (offset) => (offset < at ? offset : offset + INSERTED.length);
      const outward: Move = (offset) => (offset <= at ? offset : Math.max(at, offset - INSERTED.length));
      const asked = rest.map((one) => (typeof one === "number" ? inward(one) : one));
      return moved(await base[name]!.call(this, file, ...asked), file, outward);
    };
    Object.defineProperty(Typed.prototype, name, { value: ask });
  }
  return Typed as Base;
}
