/** Ctrl+K: every command by its words. The commands are those of what is on the screen. */
import { type KeyboardEvent, useCallback, useEffect, useState } from "react";
import { Modal } from "../shared/modal.js";
import { type Command, commandsNow } from "./commands.js";

const SHOWN = 40;

function matching(commands: Command[], typed: string): Command[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  return commands.filter(({ name }) => words.every((word) => name.toLowerCase().includes(word))).slice(0, SHOWN);
}

const optionId = (index: number) => `command-${index}`;

function Palette({ close }: { close: () => void }) {
  const [commands] = useState(commandsNow);
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const found = matching(commands, typed);
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
        placeholder="What do you want to do?"
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
        {found.length === 0 ? "No command matches." : ""}
      </p>
    </Modal>
  );
}

/** @returns what opens it, and the element that shows it */
export function usePalette() {
  // The browser tells of a closed dialog a moment later: by its number that word ends no opening but its own.
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
  return { openPalette, palette: isOpen && <Palette key={opening} close={close} /> };
}
