/** The code in Monaco: JavaScript coloured, the refused place marked. Knows no action. */
import "../../monaco-workers.js";
import { conf, language } from "monaco-editor/esm/vs/basic-languages/javascript/javascript.js";
import { type RefObject, useEffect, useRef, useState } from "react";
import type { CodeProblem } from "../shared/model.js";
import { mayEdit } from "../shell/rights.js";
import { useRole } from "../shell/role.js";
import { findFaults, setTypes } from "./code-check.js";
import * as monaco from "./editor-features.js";
import type { Caret } from "./plain-code.js";
import type { CodeTypes } from "./use-code-types.js";
import type { PlaceInCode } from "./use-place-in-code.js";

interface CodeEditorProps {
  code: string;
  onChange: (code: string) => void;
  fault: { message: string; at: { line: number; column: number } | null } | null;
  /** What a save would be refused for, found while one types. */
  problems: readonly CodeProblem[];
  types: CodeTypes;
  /** A place to go to; each object once. */
  at: PlaceInCode | null;
  /** The selection of the plain text area that this editor replaces; null unless it had the focus. */
  caret: RefObject<Caret | null>;
}

// Monaco's own registration imports the language when the first code is shown, which is one more round trip.
monaco.languages.register({ id: "javascript", extensions: [".js"], aliases: ["JavaScript"] });
monaco.languages.setLanguageConfiguration("javascript", conf);
monaco.languages.setMonarchTokensProvider("javascript", language);

const dark = matchMedia("(prefers-color-scheme: dark)");

const surface = (background: string, gutter: string) => ({
  "editor.background": background,
  "editorGutter.background": background,
  "editorLineNumber.foreground": gutter,
});
monaco.editor.defineTheme("studio-light", {
  base: "vs",
  inherit: true,
  rules: [],
  colors: surface("#ffffff", "#59626f"),
});
monaco.editor.defineTheme("studio-dark", {
  base: "vs-dark",
  inherit: true,
  rules: [],
  colors: surface("#14171c", "#a0a9b6"),
});
const wear = () => monaco.editor.setTheme(dark.matches ? "studio-dark" : "studio-light");
dark.addEventListener("change", wear);
wear();

// Monaco rejects its pending work when an editor is disposed, after its last listener is gone.
addEventListener("unhandledrejection", (event) => {
  if (event.reason instanceof Error && event.reason.name === "Canceled") event.preventDefault();
});

const OPTIONS: monaco.editor.IStandaloneEditorConstructionOptions = {
  language: "javascript",
  ariaLabel: "Code. Tab indents; Control M lets Tab leave the editor.",
  automaticLayout: true,
  fontSize: 13,
  lineHeight: 20,
  fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace",
  minimap: { enabled: false },
  overviewRulerBorder: false,
  hideCursorInOverviewRuler: true,
  padding: { top: 10, bottom: 10 },
  lineNumbersMinChars: 3,
  // Dimmed, as it is otherwise, the last number is too faint to read.
  renderFinalNewline: "on",
  renderLineHighlight: "line",
  scrollBeyondLastLine: false,
  stickyScroll: { enabled: false },
  fixedOverflowWidgets: true,
  tabSize: 2,
};

const MARKS = "service";
const PROBLEMS = "problems";
const PAUSE_MS = 400;
/** Delay of TypeScript's diagnostics while nothing is typed: its start takes a second of processor time, which clicks need first. */
const LOOKING_MS = 2_000;

/** From there to the end of its line. */
function markAt(
  model: monaco.editor.ITextModel,
  { line, column }: PlaceInCode,
  message: string,
): monaco.editor.IMarkerData {
  const startLineNumber = Math.min(line, model.getLineCount());
  const endColumn = model.getLineMaxColumn(startLineNumber);
  const place = { startLineNumber, startColumn: column, endLineNumber: startLineNumber, endColumn };
  return { ...place, message, severity: monaco.MarkerSeverity.Error };
}

function goTo(editor: monaco.editor.IStandaloneCodeEditor | null, { line, column }: PlaceInCode): void {
  editor?.revealLineInCenterIfOutsideViewport(line);
  editor?.setPosition({ lineNumber: line, column });
}

/** What TypeScript finds, once the code and the types have stood still. */
function useFaults(editor: RefObject<monaco.editor.IStandaloneCodeEditor | null>, code: string, types: CodeTypes) {
  const [faults, setFaults] = useState<monaco.editor.IMarkerData[]>([]);
  const [isDue, setDue] = useState(false);
  useEffect(() => {
    const begin = () => setDue(true);
    const due = setTimeout(begin, LOOKING_MS);
    const focused = editor.current?.onDidFocusEditorText(begin);
    return () => {
      clearTimeout(due);
      focused?.dispose();
    };
  }, [editor]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the model holds the code
  useEffect(() => {
    if (!isDue) return;
    let isOver = false;
    const due = setTimeout(() => {
      const judged = editor.current?.getModel();
      if (!judged) return;
      findFaults(judged, types).then(
        (found) => isOver || setFaults(found),
        // The editor has gone, and its worker with it.
        () => undefined,
      );
    }, PAUSE_MS);
    return () => {
      isOver = true;
      clearTimeout(due);
    };
  }, [isDue, editor, code, types]);
  return faults;
}

/** Replaces the text of the editor. Undo restores the text before. */
function replaceText(model: monaco.editor.ITextModel, code: string): void {
  if (model.getValue() === "") model.setValue(code);
  else {
    model.pushEditOperations([], [{ range: model.getFullModelRange(), text: code }], () => null);
    model.pushStackElement();
  }
}

/** Continues where the person was typing before Monaco was loaded. */
function continueAt(editor: monaco.editor.IStandaloneCodeEditor, { start, end }: Caret): void {
  const model = editor.getModel();
  if (!model) return;
  editor.setSelection(monaco.Range.fromPositions(model.getPositionAt(start), model.getPositionAt(end)));
  editor.focus();
}

export function CodeEditor({ code, onChange, fault, problems, types, at, caret }: CodeEditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<monaco.editor.IStandaloneCodeEditor | null>(null);
  const changed = useRef(onChange);
  changed.current = onChange;
  /** Texts that have not come back yet. */
  const reported = useRef<string[]>([]);
  useEffect(() => {
    if (!host.current) return;
    const made = monaco.editor.create(host.current, { ...OPTIONS, value: "" });
    editor.current = made;
    const listening = made.onDidChangeModelContent(() => {
      reported.current.push(made.getValue());
      changed.current(reported.current.at(-1)!);
    });
    return () => {
      listening.dispose();
      made.getModel()?.dispose();
      made.dispose();
    };
  }, []);
  const readOnly = !mayEdit(useRole());
  useEffect(() => editor.current?.updateOptions({ readOnly }), [readOnly]);
  const faults = useFaults(editor, code, types);

  useEffect(() => {
    const model = editor.current?.getModel();
    // What the editor reported itself comes back, perhaps when more has been typed; only a loaded or restored text replaces it.
    const place = reported.current.indexOf(code);
    if (place >= 0) reported.current.splice(0, place + 1);
    if (model && place < 0 && model.getValue() !== code) {
      replaceText(model, code);
      reported.current = [];
    }
    if (caret.current) continueAt(editor.current!, caret.current);
    caret.current = null;
  }, [code, caret]);

  useEffect(() => {
    const model = editor.current?.getModel();
    if (!model) return;
    const { line = 1, column = 1 } = fault?.at ?? {};
    monaco.editor.setModelMarkers(model, MARKS, fault ? [markAt(model, { line, column }, fault.message)] : []);
    if (fault) goTo(editor.current, { line, column });
  }, [fault]);

  useEffect(() => {
    const model = editor.current?.getModel();
    if (!model) return;
    const refused = problems.map((one) => markAt(model, one, one.message));
    // Of a line that a save would be refused for, the service's word is enough.
    const others = faults.filter((one) => !problems.some(({ line }) => line === one.startLineNumber));
    monaco.editor.setModelMarkers(model, PROBLEMS, [...refused, ...others]);
  }, [problems, faults]);

  useEffect(() => setTypes(types.library, types), [types]);

  useEffect(() => {
    if (!at) return;
    goTo(editor.current, at);
    editor.current?.focus();
  }, [at]);

  return <div ref={host} className="code-editor" />;
}
