/** Commands of the command palette: those that components register, and one for each button on the screen. */
import { useLayoutEffect } from "react";
import type { IconComponent } from "./page-icons.js";

export interface Command {
  name: string;
  /** Keyboard shortcut of the command, as the palette shows it. */
  shortcut?: string;
  /** Icon of the kind of thing that the command opens. Commands without an icon press a button of the page. */
  icon?: IconComponent | undefined;
  run: () => void;
}

const registeredCommands = new Map<symbol, readonly Command[]>();

/** Registers commands while the component is mounted. @param commands must be the same array in each render, unless the commands change */
export function useCommands(commands: readonly Command[]): void {
  // A layout effect runs before the browser draws the page, so the palette always contains the commands of the visible page.
  useLayoutEffect(() => {
    const key = Symbol("commands");
    registeredCommands.set(key, commands);
    return () => void registeredCommands.delete(key);
  }, [commands]);
}

/** CSS selector of the buttons and tabs that the palette offers as commands. Buttons in rows of a list are excluded. */
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

/**
 * Returns the commands of the palette. If several have the same name, only the first is returned, so that a registered command replaces its
 * button.
 */
export function listCommands(): Command[] {
  const all = [...registeredCommands.values()].flat();
  const byName = new Map(findScreenCommands().map((command) => [command.name, command]));
  for (const { name } of all) byName.delete(name);
  return [...byName.values(), ...all];
}
