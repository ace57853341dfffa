/** Menu of columns, with its button. Studio loads this code when a person first presses the button, so the menu is open at first. */

import Check from "icon:check";
import * as Dropdown from "@radix-ui/react-dropdown-menu";
import { ColumnsButton } from "./columns-button.js";
import { RUN_COLUMNS } from "./run-columns.js";
import type { RunColumnsState } from "./use-columns.js";

export function ColumnsMenu({ shownColumns, toggleColumn }: RunColumnsState) {
  return (
    <Dropdown.Root modal={false} defaultOpen>
      <Dropdown.Trigger asChild>
        <ColumnsButton />
      </Dropdown.Trigger>
      <Dropdown.Content className="menu" align="end" sideOffset={6}>
        {RUN_COLUMNS.filter(({ isFixed }) => !isFixed).map((column) => (
          <Dropdown.CheckboxItem
            key={column.key}
            checked={shownColumns.includes(column)}
            // The menu stays open after a selection, so that a person can select several columns.
            onSelect={(event) => event.preventDefault()}
            onCheckedChange={() => toggleColumn(column.key)}
          >
            <span className="grow">{column.heading}</span>
            <Dropdown.ItemIndicator>
              <Check size={14} aria-hidden />
            </Dropdown.ItemIndicator>
          </Dropdown.CheckboxItem>
        ))}
      </Dropdown.Content>
    </Dropdown.Root>
  );
}
