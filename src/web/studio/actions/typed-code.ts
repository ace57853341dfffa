/**
 * Makes TypeScript check an action's code with a type for the parameter of `execute`. Inserts a type comment into the
 * compiler's copy of the code. The comment moves the code behind it, so this module corrects all later positions. It adds
 * the comment's length in requests to the compiler, and subtracts it in the results.
 */
import { ACTION_CONTEXT_TYPE_NAME } from "./code-types.js";

const INSERTED_TYPE = `/** @type {${ACTION_CONTEXT_TYPE_NAME}} */ `;

/** The parts of a syntax tree node that this module uses. */
interface SyntaxNode {
  kind: number;
  name?: { text?: string };
  parameters?: readonly SyntaxNode[];
  declarationList?: { declarations: readonly { name: { text?: string }; initializer?: SyntaxNode }[] };
  getStart(): number;
}

/** The parts of the TypeScript compiler that this module uses. */
export interface Compiler {
  createSourceFile(
    name: string,
    text: string,
    target: number,
    setParentNodes: boolean,
    kind: number,
  ): { statements: readonly SyntaxNode[] };
  getJSDocType(node: SyntaxNode): unknown;
  isFunctionLike(node: SyntaxNode): boolean;
  ScriptTarget: { ESNext: number };
  ScriptKind: { JS: number };
}

/** The parts of Monaco's TypeScript worker that this module uses. */
interface TypeScriptWorker {
  _getScriptText(file: string): string | undefined;
  _getModel(file: string): { version: number; getValue(): string } | null;
}

/**
 * Returns the offset of the first parameter of `execute`. Returns null if there is no parameter, if it is not in parentheses, or if the
 * author has declared its type.
 */
function findParameterOffset(ts: Compiler, code: string): number | null {
  const { statements } = ts.createSourceFile("code.js", code, ts.ScriptTarget.ESNext, true, ts.ScriptKind.JS);
  const functions = statements.flatMap((statement) => [
    ...(statement.name?.text === "execute" ? [statement] : []),
    ...(statement.declarationList?.declarations ?? []).flatMap(({ name, initializer }) =>
      name.text === "execute" && initializer ? [initializer] : [],
    ),
  ]);
  const parameter = functions.find((syntaxFunction) => ts.isFunctionLike(syntaxFunction))?.parameters?.[0];
  if (!parameter || ts.getJSDocType(parameter)) return null;
  const start = parameter.getStart();
  // TypeScript reads a type comment only directly after the opening parenthesis of the parameters.
  return /\(\s*$/.test(code.slice(0, start)) ? start : null;
}

type PositionMapper = (offset: number) => number;

/** Returns a copy of a compiler result. Applies `move` to all positions in `file`, so that they refer to the code without the comment. */
function mapPositions(answer: unknown, file: string, move: PositionMapper): unknown {
  if (Array.isArray(answer)) return answer.map((part) => mapPositions(part, file, move));
  if (typeof answer !== "object" || answer === null) return answer;
  const {
    start,
    length,
    fileName,
    file: sourceFile,
  } = answer as {
    start?: unknown;
    length?: unknown;
    fileName?: string;
    file?: { fileName?: string };
  };
  const resultFile = fileName ?? sourceFile?.fileName;
  if (resultFile !== undefined && resultFile !== file) return answer;
  const mappedFields = Object.fromEntries(
    Object.entries(answer).map(([name, value]) => [name, mapPositions(value, file, move)]),
  );
  if (typeof start !== "number" || typeof length !== "number") return mappedFields;
  return { ...mappedFields, start: move(start), length: move(start + length) - move(start) };
}

/** Methods of Monaco's worker. This module corrects the positions in their arguments and results. The first argument is a file name. */
const CORRECTED_METHODS = [
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

type WorkerMethod = (file: string, ...methodArguments: unknown[]) => Promise<unknown>;

/**
 * Returns a subclass of Monaco's worker class that inserts the type comment, and corrects positions for it.
 * @param Base Monaco's class, which has all of CORRECTED_METHODS
 */
export function addWorkerContextTypes<Base extends new (...constructorArguments: never[]) => object>(
  Base: Base,
  ts: Compiler,
): Base {
  const insertionCache = new Map<string, { version: number; insertionOffset: number | null }>();
  const basePrototype = Base.prototype as TypeScriptWorker & Record<string, WorkerMethod>;

  function findInsertion(worker: TypeScriptWorker, file: string): number | null {
    const model = worker._getModel(file);
    if (!model) return null;
    const cachedInsertion = insertionCache.get(file);
    if (cachedInsertion?.version === model.version) return cachedInsertion.insertionOffset;
    const insertionOffset = findParameterOffset(ts, model.getValue());
    insertionCache.set(file, { version: model.version, insertionOffset });
    return insertionOffset;
  }

  const TypedWorker = class extends (Base as new (...constructorArguments: never[]) => object) {
    _getScriptText(this: TypeScriptWorker, file: string): string | undefined {
      const text = basePrototype._getScriptText.call(this, file);
      const insertionOffset = findInsertion(this, file);
      return text === undefined || insertionOffset === null
        ? text
        : text.slice(0, insertionOffset) + INSERTED_TYPE + text.slice(insertionOffset);
    }
  };
  for (const name of CORRECTED_METHODS) {
    const correctedMethod: WorkerMethod = async function (this: TypeScriptWorker, file, ...methodArguments) {
      const insertionOffset = findInsertion(this, file);
      if (insertionOffset === null) return basePrototype[name]!.call(this, file, ...methodArguments);
      const toCompilerOffset: PositionMapper = (offset) =>
        offset < insertionOffset ? offset : offset + INSERTED_TYPE.length;
      const toAuthorOffset: PositionMapper = (offset) =>
        offset <= insertionOffset ? offset : Math.max(insertionOffset, offset - INSERTED_TYPE.length);
      const mappedArguments = methodArguments.map((argument) =>
        typeof argument === "number" ? toCompilerOffset(argument) : argument,
      );
      return mapPositions(await basePrototype[name]!.call(this, file, ...mappedArguments), file, toAuthorOffset);
    };
    Object.defineProperty(TypedWorker.prototype, name, { value: correctedMethod });
  }
  return TypedWorker as Base;
}
