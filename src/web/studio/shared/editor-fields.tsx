/** Group of form fields that can be disabled together. */
import type { ReactNode } from "react";

interface EditorFieldsProps {
  disabled: boolean;
  children: ReactNode;
}

export function EditorFields({ disabled, children }: EditorFieldsProps) {
  return (
    <fieldset className="editor-fields" disabled={disabled}>
      {children}
    </fieldset>
  );
}
