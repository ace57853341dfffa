/** The code with what is said of it: the service's refusal, how to leave the editor, and the button that formats it. */
import { useCallback, useMemo, useState } from "react";
import type { CodeProblem } from "../shared/model.js";
import { useCommands } from "../shell/commands.js";
import { Changes } from "../shell/role.js";
import type { FieldFault } from "./field-fault.js";
import { formatCode } from "./format-code.js";
import { CodeEditor } from "./lazy-editor.js";
import type { CodeTypes } from "./use-code-types.js";
import type { PlaceInCode } from "./use-place-in-code.js";

interface CodePaneProps {
  code: string;
  onChange: (code: string) => void;
  fault: FieldFault | null;
  /** What a save would be refused for, found while one types. */
  problems: readonly CodeProblem[];
  types: CodeTypes;
  /** Adds a package to the draft's dependencies. */
  addDependency: (name: string) => void;
  /** A place to go to. */
  at: PlaceInCode | null;
}

export function CodePane({ code, onChange, fault, problems, types, addDependency, at }: CodePaneProps) {
  const [refusal, setRefusal] = useState<string | null>(null);
  const format = useCallback(async () => {
    try {
      const formatted = await formatCode(code);
      setRefusal(null);
      if (formatted !== code) onChange(formatted);
    } catch (error) {
      // The first line says where; the others draw the code around it.
      setRefusal(`It cannot be formatted: ${(error as Error).message.split("\n")[0]}`);
    }
  }, [code, onChange]);
  const missing = [...new Set(problems.map(({ dependency }) => dependency))].filter((name) => name !== null);
  useCommands(useMemo(() => [{ name: "Format the code", run: () => void format() }], [format]));
  return (
    <section className="code" aria-label="Code">
      <CodeEditor {...{ code, onChange, fault, problems, types, at }} />
      {fault && (
        <p className="fault code-fault" role="alert" data-field="code">
          {fault.message} <code>{fault.status}</code>
        </p>
      )}
      {missing.length > 0 && (
        <Changes>
          <p className="row code-foot" role="status">
            {missing.map((name) => (
              <button key={name} type="button" className="small" onClick={() => addDependency(name)}>
                Add {name}
              </button>
            ))}
            <span className="hint">The code uses {missing.length === 1 ? "this package" : "these packages"}.</span>
          </p>
        </Changes>
      )}
      <div className="row code-foot">
        <span className="hint grow" id="code-keys">
          Tab indents; <kbd>Ctrl M</kbd> lets Tab leave the editor, and indent again.
        </span>
        <span className="fault" role="status">
          {refusal}
        </span>
        <Changes>
          <button type="button" className="small" onClick={() => void format()}>
            Format
          </button>
        </Changes>
      </div>
    </section>
  );
}
