/** Configures Monaco's TypeScript compiler for the code of actions, and reads the type errors that it finds. Sends no requests. */
import "monaco-editor/esm/vs/language/typescript/monaco.contribution.js";
import { type CompilerDiagnostic, getDiagnosticText, isCodeError } from "./code-diagnostics.js";
import { type ActionTypeDeclarations, COMPILER_OPTIONS } from "./code-types.js";
import * as monaco from "./editor-features.js";

const { javascriptDefaults, getJavaScriptWorker } = monaco.languages.typescript;

javascriptDefaults.setCompilerOptions(COMPILER_OPTIONS);
// Monaco's own error check and formatter stay off: `findTypeErrors` reads the type errors, and Prettier formats the code.
javascriptDefaults.setModeConfiguration({
  completionItems: true,
  hovers: true,
  signatureHelp: true,
  documentHighlights: true,
  documentSymbols: true,
  rename: true,
});

/**
 * Sets the type declarations with which TypeScript checks the code.
 * @param declarations content of svc.d.ts, the types of the client library
 */
export function setTypeDeclarations(
  declarations: string,
  { globalDeclarations, packages }: ActionTypeDeclarations,
): void {
  javascriptDefaults.setExtraLibs([
    { content: declarations, filePath: "file:///svc.d.ts" },
    { content: globalDeclarations, filePath: "file:///action.d.ts" },
    ...packages.map((file) => ({ content: file.content, filePath: `file:///${file.filePath}` })),
  ]);
}

/** Returns the type errors of the code; none if it has a syntax error, because the service reports that error with a better message. */
export async function findTypeErrors(
  model: monaco.editor.ITextModel,
  types: Pick<ActionTypeDeclarations, "hasUnknownNames">,
): Promise<monaco.editor.IMarkerData[]> {
  const getWorker = await getJavaScriptWorker();
  const worker = await getWorker(model.uri);
  const file = model.uri.toString();
  const [syntaxErrors, typeErrors] = (await Promise.all([
    worker.getSyntacticDiagnostics(file),
    worker.getSemanticDiagnostics(file),
  ])) as [CompilerDiagnostic[], CompilerDiagnostic[]];
  if (model.isDisposed() || syntaxErrors.length > 0) return [];
  return typeErrors
    .filter((diagnostic) => isCodeError(diagnostic, types))
    .map((diagnostic) => {
      const from = model.getPositionAt(diagnostic.start ?? 0);
      const to = model.getPositionAt((diagnostic.start ?? 0) + (diagnostic.length ?? 0));
      return {
        startLineNumber: from.lineNumber,
        startColumn: from.column,
        endLineNumber: to.lineNumber,
        endColumn: to.column,
        message: getDiagnosticText(diagnostic),
        severity: monaco.MarkerSeverity.Error,
      };
    });
}
