/** TypeScript in Monaco for actions: what it knows of the code, and what it finds wrong. Asks no service. */
import "monaco-editor/esm/vs/language/typescript/monaco.contribution.js";
import { type Finding, isFault, textOf } from "./code-findings.js";
import { type ActionTypes, COMPILER_OPTIONS } from "./code-types.js";
import * as monaco from "./editor-features.js";

const { javascriptDefaults, getJavaScriptWorker } = monaco.languages.typescript;

javascriptDefaults.setCompilerOptions(COMPILER_OPTIONS);
// Faults are asked for below, where the service's word is known too; Prettier formats; what leads elsewhere has nowhere to lead.
javascriptDefaults.setModeConfiguration({
  completionItems: true,
  hovers: true,
  signatureHelp: true,
  documentHighlights: true,
  documentSymbols: true,
  rename: true,
});

/** What TypeScript knows from now on. @param declarations of the client library */
export function setTypes(declarations: string, { text, packages }: ActionTypes): void {
  javascriptDefaults.setExtraLibs([
    { content: declarations, filePath: "file:///svc.d.ts" },
    { content: text, filePath: "file:///action.d.ts" },
    ...packages.map((one) => ({ content: one.text, filePath: `file:///${one.path}` })),
  ]);
}

/** What is wrong by the types; nothing while the code cannot be read at all, which the service says better. */
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
