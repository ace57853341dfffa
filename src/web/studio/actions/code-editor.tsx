/** Monaco editor for the code of an action. It marks the position of an error that the service reports. */
import "../../monaco-workers.js";
import { conf, language } from "monaco-editor/esm/vs/basic-languages/javascript/javascript.js";
import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { CodeProblem } from "../shared/model.js";
import { mayEdit } from "../shell/rights.js";
import { useRole } from "../shell/role.js";
import { findTypeErrors, setTypeDeclarations } from "./code-check.js";
import * as monaco from "./editor-features.js";
import type { PlainCodeState } from "./plain-code.js";
import type { CodePosition } from "./use-code-position.js";
import type { EditorTypeDeclarations } from "./use-code-types.js";

interface CodeEditorProps {
  code: string;
  onChange: (code: string) => void;
  fault: { message: string; at: { line: number; column: number } | null } | null;
  /** Errors in the code for which the service would reject a save. The page asks the service for them when the person pauses typing. */
  codeProblems: readonly CodeProblem[];
  codeTypes: EditorTypeDeclarations;
  /** Position to which the editor moves the cursor. Each new object moves the cursor, even to the same position; null does not move it. */
  targetPosition: CodePosition | null;
  /** State of the plain text area that this editor replaces; null if there was none. */
  plainCodeState: RefObject<PlainCodeState | null>;
}

// Registers the JavaScript language now. Monaco itself would request the language's file only when the first code is shown, which costs a
// round trip.
monaco.languages.register({ id: "javascript", extensions: [".js"], aliases: ["JavaScript"] });
monaco.languages.setLanguageConfiguration("javascript", conf);
monaco.languages.setMonarchTokensProvider("javascript", language);

const darkModeQuery = matchMedia("(prefers-color-scheme: dark)");

const createSurfaceColors = (background: string, gutter: string) => ({
  "editor.background": background,
  "editorGutter.background": background,
  "editorLineNumber.foreground": gutter,
});
monaco.editor.defineTheme("studio-light", {
  base: "vs",
  inherit: true,
  rules: [],
  colors: createSurfaceColors("#ffffff", "#5a636f"),
});
monaco.editor.defineTheme("studio-dark", {
  base: "vs-dark",
  inherit: true,
  rules: [],
  colors: createSurfaceColors("#121519", "#9ba5b3"),
});
const applyTheme = () => monaco.editor.setTheme(darkModeQuery.matches ? "studio-dark" : "studio-light");
darkModeQuery.addEventListener("change", applyTheme);
applyTheme();

// When an editor is closed, Monaco cancels its work by rejecting promises. This listener keeps these rejections out of
// the browser's console.
addEventListener("unhandledrejection", (event) => {
  if (event.reason instanceof Error && event.reason.name === "Canceled") event.preventDefault();
});

const EDITOR_OPTIONS: monaco.editor.IStandaloneEditorConstructionOptions = {
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
  // Shows the number of an empty last line in the normal color. Monaco's dimmed color would be too faint to read.
  renderFinalNewline: "on",
  renderLineHighlight: "line",
  scrollBeyondLastLine: false,
  stickyScroll: { enabled: false },
  scrollbar: { horizontalScrollbarSize: 8, verticalScrollbarSize: 8 },
  fixedOverflowWidgets: true,
  tabSize: 2,
};

const SERVICE_MARKER_OWNER = "service";
const PROBLEM_MARKER_OWNER = "problems";
const CHECK_DELAY_MS = 400;
/**
 * Delay before the first type check, unless the person focuses the editor earlier. TypeScript needs a second of
 * processor time to start, in which the page does not respond to clicks.
 */
const FIRST_CHECK_DELAY_MS = 2_000;

/** Returns an editor marker that underlines the code from a position to the end of the line. */
function createMarker(
  model: monaco.editor.ITextModel,
  { line, column }: CodePosition,
  message: string,
): monaco.editor.IMarkerData {
  const startLineNumber = Math.min(line, model.getLineCount());
  const endColumn = model.getLineMaxColumn(startLineNumber);
  const markedRange = { startLineNumber, startColumn: column, endLineNumber: startLineNumber, endColumn };
  return { ...markedRange, message, severity: monaco.MarkerSeverity.Error };
}

function moveCursorTo(editor: monaco.editor.IStandaloneCodeEditor | null, { line, column }: CodePosition): void {
  editor?.revealLineInCenterIfOutsideViewport(line);
  editor?.setPosition({ lineNumber: line, column });
}

type EditorRef = RefObject<monaco.editor.IStandaloneCodeEditor | null>;

/**
 * Hook that returns TypeScript's errors for the code as editor markers. The checks begin when the person focuses the editor, at the latest
 * after FIRST_CHECK_DELAY_MS. Then each change of the code or its types causes a check after a pause of CHECK_DELAY_MS.
 */
function useTypeErrors(editor: EditorRef, code: string, types: EditorTypeDeclarations) {
  const [typeErrors, setTypeErrors] = useState<monaco.editor.IMarkerData[]>([]);
  const [areChecksStarted, setChecksStarted] = useState(false);
  useEffect(() => {
    const startChecks = () => setChecksStarted(true);
    const timer = setTimeout(startChecks, FIRST_CHECK_DELAY_MS);
    const focusListener = editor.current?.onDidFocusEditorText(startChecks);
    return () => {
      clearTimeout(timer);
      focusListener?.dispose();
    };
  }, [editor]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the effect reads the code from the editor's model
  useEffect(() => {
    if (!areChecksStarted) return;
    let isOver = false;
    const timer = setTimeout(() => {
      const checkedModel = editor.current?.getModel();
      if (!checkedModel) return;
      findTypeErrors(checkedModel, types).then(
        (markers) => isOver || setTypeErrors(markers),
        // Ignores a failure, for example because the person has closed the editor.
        () => undefined,
      );
    }, CHECK_DELAY_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [areChecksStarted, editor, code, types]);
  return typeErrors;
}

/** Replaces only the part of the editor's text that differs from the new code, as one step for Undo. */
function replaceText(model: monaco.editor.ITextModel, code: string): void {
  const oldCode = model.getValue();
  const shorterLength = Math.min(oldCode.length, code.length);
  let start = 0;
  while (start < shorterLength && oldCode[start] === code[start]) start += 1;
  let end = 0;
  while (end < shorterLength - start && oldCode.at(-1 - end) === code.at(-1 - end)) end += 1;
  const range = monaco.Range.fromPositions(model.getPositionAt(start), model.getPositionAt(oldCode.length - end));
  model.pushStackElement();
  model.pushEditOperations([], [{ range, text: code.slice(start, code.length - end) }], () => null);
  model.pushStackElement();
}

/** Restores the selection, the focus and the scroll position that the plain text area had before Monaco was loaded. */
function restoreState(editor: monaco.editor.IStandaloneCodeEditor, state: PlainCodeState): void {
  const model = editor.getModel();
  if (!model) return;
  editor.setScrollPosition({ scrollTop: state.scrollTop, scrollLeft: state.scrollLeft });
  if (!state.selection) return;
  const { start, end } = state.selection;
  editor.setSelection(monaco.Range.fromPositions(model.getPositionAt(start), model.getPositionAt(end)));
  editor.focus();
}

/**
 * Creates the Monaco editor and keeps its text equal to `code`. Uses layout effects, which run before the browser
 * handles the next key. Otherwise, a key pressed between the removal of the plain text area and the creation of the
 * editor would be lost.
 */
function useEditorText(
  element: RefObject<HTMLDivElement | null>,
  editor: EditorRef,
  { code, onChange, plainCodeState }: Pick<CodeEditorProps, "code" | "onChange" | "plainCodeState">,
) {
  const latestProps = useRef({ code, onChange });
  latestProps.current = { code, onChange };
  /** Texts that the editor has passed to `onChange` and that the parent has not yet passed back as the prop `code`. */
  const reportedTexts = useRef<string[]>([]);
  useLayoutEffect(() => {
    if (!element.current) return;
    const value = plainCodeState.current?.originalText ?? latestProps.current.code;
    const createdEditor = monaco.editor.create(element.current, { ...EDITOR_OPTIONS, value });
    editor.current = createdEditor;
    const changeListener = createdEditor.onDidChangeModelContent(() => {
      reportedTexts.current.push(createdEditor.getValue());
      latestProps.current.onChange(reportedTexts.current.at(-1)!);
    });
    return () => {
      changeListener.dispose();
      createdEditor.getModel()?.dispose();
      createdEditor.dispose();
    };
  }, [element, editor, plainCodeState]);
  useLayoutEffect(() => {
    const model = editor.current?.getModel();
    // The parent passes each typed text back as `code`, possibly after the person has typed more. A text that comes
    // back must not replace the newer text in the editor. A loaded or restored text must replace it.
    const reportedIndex = reportedTexts.current.indexOf(code);
    if (reportedIndex >= 0) reportedTexts.current.splice(0, reportedIndex + 1);
    if (model && reportedIndex < 0 && model.getValue() !== code) {
      replaceText(model, code);
      reportedTexts.current = [];
    }
    if (plainCodeState.current) restoreState(editor.current!, plainCodeState.current);
    plainCodeState.current = null;
  }, [editor, code, plainCodeState]);
}

export function CodeEditor({
  code,
  onChange,
  fault,
  codeProblems,
  codeTypes,
  targetPosition,
  plainCodeState,
}: CodeEditorProps) {
  const editorElement = useRef<HTMLDivElement>(null);
  const editor = useRef<monaco.editor.IStandaloneCodeEditor | null>(null);
  // Position to which the plain text area or Monaco has already moved the cursor. The same object must not move it again.
  const lastTargetPosition = useRef<unknown>(null);
  const shownFault = useRef<unknown>(null);
  useLayoutEffect(() => {
    if (!plainCodeState.current?.selection) return;
    lastTargetPosition.current = targetPosition;
    shownFault.current = fault;
  }, [targetPosition, fault, plainCodeState]);
  useEditorText(editorElement, editor, { code, onChange, plainCodeState });
  const readOnly = !mayEdit(useRole());
  useEffect(() => editor.current?.updateOptions({ readOnly }), [readOnly]);
  const typeErrors = useTypeErrors(editor, code, codeTypes);

  useEffect(() => {
    const model = editor.current?.getModel();
    if (!model) return;
    const { line = 1, column = 1 } = fault?.at ?? {};
    monaco.editor.setModelMarkers(
      model,
      SERVICE_MARKER_OWNER,
      fault ? [createMarker(model, { line, column }, fault.message)] : [],
    );
    if (fault && fault !== shownFault.current) moveCursorTo(editor.current, { line, column });
    shownFault.current = fault;
  }, [fault]);

  useEffect(() => {
    const model = editor.current?.getModel();
    if (!model) return;
    const serviceMarkers = codeProblems.map((problem) => createMarker(model, problem, problem.message));
    // Hides TypeScript's errors on a line for which the service reports an error, because the two errors often describe
    // the same mistake.
    const otherErrors = typeErrors.filter((error) => !codeProblems.some(({ line }) => line === error.startLineNumber));
    monaco.editor.setModelMarkers(model, PROBLEM_MARKER_OWNER, [...serviceMarkers, ...otherErrors]);
  }, [codeProblems, typeErrors]);

  useEffect(() => setTypeDeclarations(codeTypes.libraryDeclarations, codeTypes), [codeTypes]);

  useEffect(() => {
    if (!targetPosition || targetPosition === lastTargetPosition.current) return;
    lastTargetPosition.current = targetPosition;
    moveCursorTo(editor.current, targetPosition);
    editor.current?.focus();
  }, [targetPosition]);

  return <div ref={editorElement} className="code-editor" />;
}
