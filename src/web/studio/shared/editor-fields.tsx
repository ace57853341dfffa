/** Group of form fields that can be disabled together. */
import type { ReactNode } from "react";

interface EditorFieldsProps {
  isDisabled: boolean;
  children: ReactNode;
}

export function EditorFields({ isDisabled, children }: EditorFieldsProps) {
  return (
    <fieldset className="editor-fields" disabled={isDisabled}>
      {children}
    </fieldset>
  );
}
