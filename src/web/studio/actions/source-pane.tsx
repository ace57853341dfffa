/** Pane with the source files of an action. Shows one file at a time, and the error of the last save. */
import { useId, useState } from "react";
import type { SourceFiles } from "./draft.js";
import type { FieldError } from "./field-error.js";

const ENTRY_FILE_PATTERN = /^action\.[jt]sx?$/;

interface SourcePaneProps {
  source: SourceFiles;
  onChange: (source: SourceFiles) => void;
  fault: FieldError | null;
}

export function SourcePane({ source, onChange, fault }: SourcePaneProps) {
  const id = useId();
  const paths = source.fileList.map(({ path }) => path);
  const [chosenPath, setChosenPath] = useState("");
  const openPath = paths.includes(chosenPath)
    ? chosenPath
    : (paths.find((path) => ENTRY_FILE_PATTERN.test(path)) ?? paths[0] ?? "");
  const changeFile = (text: string) => {
    const fileList = source.fileList.map((entry) => (entry.path === openPath ? { ...entry, text } : entry));
    onChange({ ...source, fileList });
  };
  return (
    <section className="code" aria-label="Source">
      <div className="row code-foot">
        <label htmlFor={id}>File</label>
        <select id={id} value={openPath} onChange={({ target }) => setChosenPath(target.value)}>
          {paths.map((path) => (
            <option key={path}>{path}</option>
          ))}
        </select>
        <span className="hint grow">The service builds the code from these files when you save.</span>
      </div>
      <textarea
        className="source-text"
        aria-label={`Text of ${openPath}`}
        spellCheck={false}
        value={source.fileList.find(({ path }) => path === openPath)?.text ?? ""}
        onChange={({ target }) => changeFile(target.value)}
      />
      {fault && (
        <p className="fault code-fault" role="alert" data-field="source">
          {fault.message} <code>{fault.status}</code>
        </p>
      )}
    </section>
  );
}
