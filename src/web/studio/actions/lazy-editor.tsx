/**
 * Code editor that shows a plain text area until Monaco is loaded. If Monaco cannot be loaded or fails later, the plain
 * text area remains or returns, with an error text.
 */
import { Component, type ComponentProps, lazy, type ReactNode, Suspense, useRef } from "react";
import { LoadError } from "../shell/load-error.js";
import { loadCodeEditor } from "./load-editor.js";
import { PlainCodeEditor, type PlainCodeState, waitForComposition } from "./plain-code.js";

const LazyEditor = lazy(async () => {
  const modules = await loadCodeEditor();
  await waitForComposition();
  return { default: modules.CodeEditor };
});

/** React error boundary around Monaco. Without it, an error in Monaco would remove the whole page and its unsaved draft. */
class EditorBoundary extends Component<{ plain: ReactNode; children: ReactNode }, { fault: unknown }> {
  override state: { fault: unknown } = { fault: null };

  static getDerivedStateFromError(fault: unknown) {
    return { fault };
  }

  override render() {
    const { fault } = this.state;
    if (fault === null) return this.props.children;
    return (
      <>
        {this.props.plain}
        <p className="fault code-fault" role="alert">
          The editor {fault instanceof LoadError ? "could not be loaded" : "has failed"}. You can change the code here
          and save it. Then reload the page.
        </p>
      </>
    );
  }
}

export function LazyCodeEditor(props: Omit<ComponentProps<typeof LazyEditor>, "plainCodeState">) {
  const plainCodeState = useRef<PlainCodeState | null>(null);
  const { code, onChange, targetPosition } = props;
  const plain = <PlainCodeEditor {...{ code, onChange, plainCodeState, targetPosition }} />;
  return (
    <EditorBoundary plain={plain}>
      <Suspense fallback={plain}>
        <LazyEditor {...props} plainCodeState={plainCodeState} />
      </Suspense>
    </EditorBoundary>
  );
}
