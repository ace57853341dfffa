/** Configures Monaco's TypeScript for actions, and reads its diagnostics. Sends no requests. */
import "monaco-editor/esm/vs/language/typescript/monaco.contribution.js";
import { type Finding, isFault, textOf } from "./code-findings.js";
import { type ActionTypes, COMPILER_OPTIONS } from "./code-types.js";
import * as monaco from "./editor-features.js";

const { javascriptDefaults, getJavaScriptWorker } = monaco.languages.typescript;

javascriptDefaults.setCompilerOptions(COMPILER_OPTIONS);
// Turns off Monaco's own diagnostics, because findFaults reads them. Prettier formats the code. There is no other file to navigate to.
javascriptDefaults.setModeConfiguration({
  completionItems: true,
  hovers: true,
  signatureHelp: true,
  documentHighlights: true,
  documentSymbols: true,
  rename: true,
});

/** Replaces the types that TypeScript knows. @param declarations types of the client library */
export function setTypes(declarations: string, { text, packages }: ActionTypes): void {
  javascriptDefaults.setExtraLibs([
    { content: declarations, filePath: "file:///svc.d.ts" },
    { content: text, filePath: "file:///action.d.ts" },
    ...packages.map((one) => ({ content: one.text, filePath: `file:///${one.path}` })),
  ]);
}

/** Returns the type errors of the code. Returns none if the code has a syntax error, because the service reports it better. */
export async function findFaults(
  model: monaco.editor.ITextModel,
  types: Pick<ActionTypes, "hasUnknownNames">,
): Promise<monaco.editor.IMarkerData[]> {
  const workerOf = await getJavaScriptWorker();
  const worker = await workerOf(model.uri);
  const file = model.uri.toString();
  const [unreadable, found] = (await Promise.all([
    worker.getSyntacticDiagnostics(file),
    worker.getSemanticDiagnostics(file),
  ])) as [Finding[], Finding[]];
  if (model.isDisposed() || unreadable.length > 0) return [];
  return found
    .filter((one) => isFault(one, types))
    .map((one) => {
      const from = model.getPositionAt(one.start ?? 0);
      const to = model.getPositionAt((one.start ?? 0) + (one.length ?? 0));
      return {
        startLineNumber: from.lineNumber,
        startColumn: from.column,
        endLineNumber: to.lineNumber,
        endColumn: to.column,
        message: textOf(one),
        severity: monaco.MarkerSeverity.Error,
      };
    });
}
