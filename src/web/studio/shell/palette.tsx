/**
 * Command palette, which opens at Ctrl+K. It finds by words: commands of the screen, actions, data sources, settings, people, runs and
 * documentation.
 */

import ChevronRight from "icon:chevron-right";
import { Command as CommandMenu, useCommandState } from "cmdk";
import { useCallback, useEffect, useState } from "react";
import { ModalDialog } from "../shared/modal.js";
import { listCommands, type PaletteCommand } from "./commands.js";
import { createOpenRunCommands, type PaletteContext, useDocsCommands, usePaletteItems } from "./palette-search.js";

const MAX_COMMANDS_SHOWN = 40;
const ICON_PIXELS = 16;

function filterCommands(commands: PaletteCommand[], searchText: string): PaletteCommand[] {
  const words = searchText.toLowerCase().split(/\s+/).filter(Boolean);
  return commands
    .filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)))
    .slice(0, MAX_COMMANDS_SHOWN);
}

/**
 * Returns the commands without duplicates. Of several commands with the same name, such as two data sources with equal
 * names, only one remains.
 */
const removeDuplicates = (commands: PaletteCommand[]): PaletteCommand[] => [
  // The library identifies options by their names without white space at the ends, so the comparison removes this white
  // space too.
  ...new Map(commands.map((command) => [command.name.trim(), command])).values(),
];

const CommandIcon = ({ icon: Icon = ChevronRight }: PaletteCommand) => <Icon size={ICON_PIXELS} aria-hidden />;

function SearchField({ onValueChange }: { onValueChange: (searchText: string) => void }) {
  const selected = useCommandState(({ value }) => value);
  const [optionId, setOptionId] = useState<string>();
  // The library announces the selected option to screen readers only after an arrow key. This effect also announces the
  // first option, which the library selects by itself.
  useEffect(() => {
    setOptionId(selected && document.querySelector('.palette [role="option"][aria-selected="true"]')?.id);
  }, [selected]);
  return (
    <CommandMenu.Input
      asChild
      placeholder="Search actions, tables, runs, settings, people, docs and commands"
      onValueChange={onValueChange}
    >
      <input aria-activedescendant={optionId} />
    </CommandMenu.Input>
  );
}

function CommandPalette({ closePalette, context }: { closePalette: () => void; context: PaletteContext }) {
  const [commands] = useState(listCommands);
  const items = usePaletteItems(context);
  const [searchText, setSearchText] = useState("");
  const docs = useDocsCommands(searchText, context);
  const commandsFound = removeDuplicates([
    ...createOpenRunCommands(searchText, context),
    ...filterCommands([...commands, ...items], searchText),
    ...docs.commands,
  ]);
  const runCommand = ({ run }: PaletteCommand) => {
    closePalette();
    // Runs the command after the palette has closed and returned the focus, so that the command itself can move the focus.
    setTimeout(run);
  };
  return (
    <ModalDialog className="palette" aria-label="Commands" onClose={closePalette}>
      {/* The dialog focuses its first focusable element. This must be the text field, not the menu. */}
      <CommandMenu label="Command" shouldFilter={false} loop tabIndex={undefined}>
        <SearchField onValueChange={setSearchText} />
        <CommandMenu.List label="Commands">
          {commandsFound.map((command) => (
            <CommandMenu.Item key={command.name} value={command.name} onSelect={() => runCommand(command)}>
              <CommandIcon {...command} />
              <span className="grow">{command.name}</span>
              {command.shortcut && <kbd>{command.shortcut}</kbd>}
            </CommandMenu.Item>
          ))}
        </CommandMenu.List>
        {/* This message is outside of the list, because a list box must contain only options. */}
        <div className="hint" role="status">
          {docs.fault === null && <CommandMenu.Empty>Nothing matches.</CommandMenu.Empty>}
        </div>
        {docs.fault !== null && (
          <p className="fault" role="alert">
            The search in the docs failed: {docs.fault}
          </p>
        )}
      </CommandMenu>
    </ModalDialog>
  );
}

/** Hook that returns a function which opens the palette, and the element of the palette. */
export function usePalette(context: PaletteContext) {
  // Number of times that the palette was opened. A late close event of an earlier dialog must not close a palette that
  // was opened later.
  const [{ openCount, isOpen }, setState] = useState({ openCount: 0, isOpen: false });
  const openPalette = useCallback(() => setState((now) => ({ openCount: now.openCount + 1, isOpen: true })), []);
  const closePalette = useCallback(
    () => setState((now) => (now.openCount === openCount ? { openCount, isOpen: false } : now)),
    [openCount],
  );
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey || event.key.toLowerCase() !== "k")
        return;
      event.preventDefault();
      event.stopPropagation();
      // Does nothing while another dialog is open, which the person must close first.
      if (!document.querySelector("dialog[open]")) openPalette();
    };
    addEventListener("keydown", onKey, true);
    return () => removeEventListener("keydown", onKey, true);
  }, [openPalette]);
  useEffect(() => {
    if (!isOpen) return;
    // Closes the palette when the person leaves the page by the button Back or Forward, because the palette's commands
    // belong to that page.
    addEventListener("popstate", closePalette);
    return () => removeEventListener("popstate", closePalette);
  }, [isOpen, closePalette]);
  return {
    openPalette,
    palette: isOpen && <CommandPalette key={openCount} closePalette={closePalette} context={context} />,
  };
}
