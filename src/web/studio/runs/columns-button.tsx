/** Button that opens the menu of columns. Studio shows this button until the menu's code is loaded. */
import Columns3 from "icon:columns-3";
import type { ComponentProps } from "react";

export const ColumnsButton = (props: ComponentProps<"button">) => (
  <button type="button" className="quiet columns-button" {...props}>
    <Columns3 size={14} aria-hidden /> Columns
  </button>
);
