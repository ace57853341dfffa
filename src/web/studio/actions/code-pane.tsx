/** Pane with the code editor, the error of the last save, the keyboard help, and the button that formats the code. */
import { useCallback, useMemo, useRef, useState } from "react";
import type { CodeProblem } from "../shared/model.js";
import { useCommandRegistration } from "../shell/commands.js";
import { ForEditors } from "../shell/role.js";
import type { FieldError } from "./field-error.js";
import { formatCode } from "./format-code.js";
import { LazyCodeEditor } from "./lazy-editor.js";
import type { CodePosition } from "./use-code-position.js";
import type { EditorTypeDeclarations } from "./use-code-types.js";

interface CodePaneProps {
  code: string;
  onChange: (code: string) => void;
  fault: FieldError | null;
  /** Errors in the code for which the service would reject a save. The page asks the service for them when the person pauses typing. */
  codeProblems: readonly CodeProblem[];
  codeTypes: EditorTypeDeclarations;
  addDependency: (name: string) => void;
  /** Position to which the editor moves the cursor; null to leave the cursor where it is. */
  targetPosition: CodePosition | null;
}

export function CodePane({
  code,
  onChange,
  fault,
  codeProblems,
  codeTypes,
  addDependency,
  targetPosition,
}: CodePaneProps) {
  const [formatFault, setFormatFault] = useState<string | null>(null);
  const latestCode = useRef(code);
  latestCode.current = code;
  const formatAndApply = useCallback(async () => {
    try {
      const formatted = await formatCode(code);
      // The person may have typed while Prettier was loaded. The formatted older code must then not replace the newer
      // code.
      if (latestCode.current !== code) return setFormatFault("Not formatted: you have changed the code meanwhile.");
      setFormatFault(null);
      if (formatted !== code) onChange(formatted);
    } catch (error) {
      // Shows only the first line of Prettier's message, because the other lines repeat the code.
      setFormatFault(`The code cannot be formatted: ${(error as Error).message.split("\n")[0]}`);
    }
  }, [code, onChange]);
  const missingDependencies = [...new Set(codeProblems.map(({ dependency }) => dependency))].filter(
    (name) => name !== null,
  );
  useCommandRegistration(
    useMemo(() => [{ name: "Format the code", run: () => void formatAndApply() }], [formatAndApply]),
  );
  return (
    <section className="code" aria-label="Code">
      <LazyCodeEditor {...{ code, onChange, fault, codeProblems, codeTypes, targetPosition }} />
      {fault && (
        <p className="fault code-fault" role="alert" data-field="code">
          {fault.message} <code>{fault.status}</code>
        </p>
      )}
      {missingDependencies.length > 0 && (
        <ForEditors>
          <p className="row code-foot" role="status">
            {missingDependencies.map((name) => (
              <button key={name} type="button" className="small" onClick={() => addDependency(name)}>
                Add {name}
              </button>
            ))}
            <span className="hint">
              The code uses {missingDependencies.length === 1 ? "this package" : "these packages"}.
            </span>
          </p>
        </ForEditors>
      )}
      <div className="row code-foot">
        <span className="hint grow" id="code-keys">
          Tab indents; <kbd>Ctrl M</kbd> lets Tab leave the editor, and indent again.
        </span>
        <span className="fault" role="status">
          {formatFault}
        </span>
        <ForEditors>
          <button type="button" className="small" onClick={() => void formatAndApply()}>
            Format
          </button>
        </ForEditors>
      </div>
    </section>
  );
}
