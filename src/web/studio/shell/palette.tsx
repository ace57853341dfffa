/** Ctrl+K: commands of the screen, and actions, tables, settings, people, runs and docs, found by their words. */
import { type KeyboardEvent, useCallback, useEffect, useState } from "react";
import { Modal } from "../shared/modal.js";
import { type Command, commandsNow } from "./commands.js";
import { runCommands, type SearchContext, useDocsHits, useItems } from "./palette-search.js";

const SHOWN = 40;

function matching(commands: Command[], typed: string): Command[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  return commands.filter(({ name }) => words.every((word) => name.toLowerCase().includes(word))).slice(0, SHOWN);
}

const optionId = (index: number) => `command-${index}`;

/** Each name once, for two tables of one name too. */
const byName = (commands: Command[]): Command[] => [...new Map(commands.map((one) => [one.name, one])).values()];

function Palette({ close, context }: { close: () => void; context: SearchContext }) {
  const [commands] = useState(commandsNow);
  const items = useItems(context);
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const docs = useDocsHits(typed, context);
  const found = byName([...runCommands(typed, context), ...matching([...commands, ...items], typed), ...docs]);
  const choose = (command: Command | undefined) => {
    if (!command) return;
    close();
    // What the command shows takes the focus after the palette has given it back.
    setTimeout(command.run);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setAt((at + step + found.length) % Math.max(1, found.length));
    else if (event.key === "Enter") choose(found[at]);
    else return;
    event.preventDefault();
  };
  useEffect(() => {
    document.getElementById(optionId(at))?.scrollIntoView({ block: "nearest" });
  }, [at]);
  return (
    <Modal className="palette" aria-label="Commands" onClose={close}>
      <input
        role="combobox"
        aria-label="Command"
        aria-expanded="true"
        aria-controls="commands"
        aria-activedescendant={found.length > 0 ? optionId(at) : undefined}
        aria-autocomplete="list"
        placeholder="Search actions, tables, runs, settings, people, docs and commands"
        autoComplete="off"
        value={typed}
        onKeyDown={onKeyDown}
        onChange={(event) => {
          setTyped(event.target.value);
          setAt(0);
        }}
      />
      <div id="commands" role="listbox" aria-label="Commands" tabIndex={-1}>
        {found.map((command, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above has the focus and the keys
          <div
            key={command.name}
            id={optionId(index)}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            onClick={() => choose(command)}
          >
            <span className="grow">{command.name}</span>
            {command.keys && <kbd>{command.keys}</kbd>}
          </div>
        ))}
      </div>
      <p className="hint" role="status">
        {found.length === 0 ? "Nothing matches." : ""}
      </p>
    </Modal>
  );
}

/** @returns what opens it, and the element that shows it */
export function usePalette(context: SearchContext) {
  // The browser reports a closed dialog a moment later. The number keeps that report from closing the next one.
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
      // A question that is open wants its answer first.
      if (!document.querySelector("dialog[open]")) openPalette();
    };
    addEventListener("keydown", onKey, true);
    return () => removeEventListener("keydown", onKey, true);
  }, [openPalette]);
  useEffect(() => {
    if (!isOpen) return;
    // Its commands are those of the page that was left.
    addEventListener("popstate", close);
    return () => removeEventListener("popstate", close);
  }, [isOpen, close]);
  return { openPalette, palette: isOpen && <Palette key={opening} close={close} context={context} /> };
}
