/** Commands of the command palette: those that components register, and the buttons on the screen. */
import { useLayoutEffect } from "react";

export interface Command {
  name: string;
  /** Keyboard shortcut of the command, as shown to the person. */
  keys?: string;
  run: () => void;
}

const registeredCommands = new Map<symbol, readonly Command[]>();

/** Registers commands while the component is mounted. @param commands must be the same array unless the commands change */
export function useCommands(commands: readonly Command[]): void {
  // A layout effect runs before the screen is drawn. The palette then always contains the commands of the shown page.
  useLayoutEffect(() => {
    const key = Symbol("commands");
    registeredCommands.set(key, commands);
    return () => void registeredCommands.delete(key);
  }, [commands]);
}

/** Returns the buttons and tabs of the page. Buttons in rows of a list are left out, and those with a registered command too. */
const OFFERED_SELECTOR =
  '#content :is(button, summary):not(:disabled, li *, tr *, [role="row"] *, [title^="Ctrl"], [title^="Alt"])';

function commandName(element: HTMLElement): string {
  const words = (element.getAttribute("aria-label") ?? element.textContent).trim();
  return element.role === "tab" ? `Show the panel ${words}` : words;
}

function findScreenCommands(): Command[] {
  return [...document.querySelectorAll<HTMLElement>(OFFERED_SELECTOR)]
    .filter((element) => element.checkVisibility() && commandName(element) !== "")
    .map((element) => ({ name: commandName(element), run: () => element.click() }));
}

/** Removes commands with a repeated name. A registered command replaces the button that does the same. */
export function currentCommands(): Command[] {
  const all = [...registeredCommands.values()].flat();
  const byName = new Map(findScreenCommands().map((command) => [command.name, command]));
  for (const { name } of all) byName.delete(name);
  return [...byName.values(), ...all];
}
