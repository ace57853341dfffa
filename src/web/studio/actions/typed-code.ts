/**
 * TypeScript's view of an action's code: as it is written, with the type of `execute`'s parameter put before it. Whatever is asked and
 * answered in positions is moved by the length of that. Knows the compiler as it is given, and no editor.
 */
import { CONTEXT_TYPE } from "./code-types.js";

const INSERTED = `/** @type {${CONTEXT_TYPE}} */ `;

/** What is used of a node of the compiler's tree. */
interface Node {
  kind: number;
  name?: { text?: string };
  parameters?: readonly Node[];
  declarationList?: { declarations: readonly { name: { text?: string }; initializer?: Node }[] };
  getStart(): number;
}

/** What is used of the compiler. */
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

/** What is used of Monaco's worker. */
interface Worker {
  _getScriptText(file: string): string | undefined;
  _getModel(file: string): { version: number; getValue(): string } | null;
}

/** Where `execute`'s parameter begins; null where there is none, or its author has said what it is. */
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
  // Without a parenthesis before it a type has no place.
  return /\(\s*$/.test(code.slice(0, start)) ? start : null;
}

type Move = (offset: number) => number;

/** An answer with its positions as the author's text has them; those of other files stay. */
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

/** What the editor asks by a file's name, and perhaps a position in it. */
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

/** Monaco's worker for actions. @param Base its class, of which each method of ASKED is one */
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
