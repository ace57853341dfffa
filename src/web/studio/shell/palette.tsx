/**
 * Command palette, which opens at Ctrl+K. It finds by words: commands of the screen, actions, data sources, settings, people, runs and
 * documentation.
 */
import ChevronRight from "lucide-react/icons/chevron-right";
import { type KeyboardEvent, useCallback, useEffect, useState } from "react";
import { ModalDialog } from "../shared/modal.js";
import { type Command, listCommands } from "./commands.js";
import { createRunCommands, type SearchContext, useDocsCommands, usePaletteItems } from "./palette-search.js";

const MAX_COMMANDS_SHOWN = 40;
const ICON_PIXELS = 16;

function filterCommands(commands: Command[], typed: string): Command[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  return commands
    .filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)))
    .slice(0, MAX_COMMANDS_SHOWN);
}

const getOptionId = (index: number) => `command-${index}`;

/** Returns the commands without those that have the same name as an earlier one, such as two data sources with equal names. */
const removeDuplicates = (commands: Command[]): Command[] => [
  ...new Map(commands.map((command) => [command.name, command])).values(),
];

const CommandIcon = ({ icon: Icon = ChevronRight }: Command) => <Icon size={ICON_PIXELS} aria-hidden />;

function CommandPalette({ close, context }: { close: () => void; context: SearchContext }) {
  const [commands] = useState(listCommands);
  const items = usePaletteItems(context);
  const [typed, setTyped] = useState("");
  /**
   * Name of the command that the person has selected by the arrow keys. An index would not identify it, because results that arrive later
   * change the positions.
   */
  const [chosenName, setChosenName] = useState<string | null>(null);
  const docs = useDocsCommands(typed, context);
  const commandsFound = removeDuplicates([
    ...createRunCommands(typed, context),
    ...filterCommands([...commands, ...items], typed),
    ...docs,
  ]);
  const at = Math.max(
    0,
    commandsFound.findIndex(({ name }) => name === chosenName),
  );
  const choose = (command: Command | undefined) => {
    if (!command) return;
    close();
    // The command runs after the palette has closed and returned the focus. Otherwise the command could not move the focus itself.
    setTimeout(command.run);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined)
      setChosenName(commandsFound.at((at + step) % Math.max(1, commandsFound.length))?.name ?? null);
    else if (event.key === "Enter") choose(commandsFound[at]);
    else return;
    event.preventDefault();
  };
  useEffect(() => {
    document.getElementById(getOptionId(at))?.scrollIntoView({ block: "nearest" });
  }, [at]);
  return (
    <ModalDialog className="palette" aria-label="Commands" onClose={close}>
      <input
        role="combobox"
        aria-label="Command"
        aria-expanded="true"
        aria-controls="commands"
        aria-activedescendant={commandsFound.length > 0 ? getOptionId(at) : undefined}
        aria-autocomplete="list"
        placeholder="Search actions, tables, runs, settings, people, docs and commands"
        autoComplete="off"
        value={typed}
        onKeyDown={onKeyDown}
        onChange={(event) => {
          setTyped(event.target.value);
          setChosenName(null);
        }}
      />
      <div id="commands" role="listbox" aria-label="Commands" tabIndex={-1}>
        {commandsFound.map((command, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the text field has the focus and handles the keys
          <div
            key={command.name}
            id={getOptionId(index)}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            onClick={() => choose(command)}
          >
            <CommandIcon {...command} />
            <span className="grow">{command.name}</span>
            {command.shortcut && <kbd>{command.shortcut}</kbd>}
          </div>
        ))}
      </div>
      <p className="hint" role="status">
        {commandsFound.length === 0 ? "Nothing matches." : ""}
      </p>
    </ModalDialog>
  );
}

/** Hook that returns a function which opens the palette, and the element of the palette. */
export function usePalette(context: SearchContext) {
  // Number of times that the palette was opened. The dialog's close event arrives late; the number prevents it from closing a palette that
  // was opened since.
  const [{ opening, isOpen }, setState] = useState({ opening: 0, isOpen: false });
  const openPalette = useCallback(() => setState((now) => ({ opening: now.opening + 1, isOpen: true })), []);
  const close = useCallback(
    () => setState((now) => (now.opening === opening ? { opening, isOpen: false } : now)),
    [opening],
  );
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey || event.key.toLowerCase() !== "k")
        return;
      event.preventDefault();
      event.stopPropagation();
      // If another dialog is open, the person must close it first.
      if (!document.querySelector("dialog[open]")) openPalette();
    };
    addEventListener("keydown", onKey, true);
    return () => removeEventListener("keydown", onKey, true);
  }, [openPalette]);
  useEffect(() => {
    if (!isOpen) return;
    // If the person goes back to another page, the palette closes, because its commands belong to the previous page.
    addEventListener("popstate", close);
    return () => removeEventListener("popstate", close);
  }, [isOpen, close]);
  return { openPalette, palette: isOpen && <CommandPalette key={opening} close={close} context={context} /> };
}
