/** The editor of a code: a plain text area until Monaco is loaded, then Monaco. */
import { type ComponentProps, lazy, Suspense, useRef } from "react";
import { loadEditor } from "./load-editor.js";
import { type Caret, PlainCode } from "./plain-code.js";

const LazyEditor = lazy(async () => ({ default: (await loadEditor()).CodeEditor }));

export function CodeEditor(props: Omit<ComponentProps<typeof LazyEditor>, "caret">) {
  const caret = useRef<Caret | null>(null);
  const { code, onChange } = props;
  return (
    <Suspense fallback={<PlainCode {...{ code, onChange, caret }} />}>
      <LazyEditor {...props} caret={caret} />
    </Suspense>
  );
}
