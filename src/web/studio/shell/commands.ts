/**
 * Commands of the command palette: the commands that components register, and one command for each button on the
 * screen.
 */
import { useLayoutEffect } from "react";
import type { IconComponent } from "../shared/icon.js";

export interface PaletteCommand {
  name: string;
  /** Keyboard shortcut of the command, as the palette shows it. */
  shortcut?: string;
  /** Icon of the command. Without this property, the palette shows an arrow. */
  icon?: IconComponent | undefined;
  run: () => void;
}

const registeredCommands = new Map<symbol, readonly PaletteCommand[]>();

/** Hook that registers commands while the component is mounted. @param commands same array in each render, unless the commands change */
export function useCommandRegistration(commands: readonly PaletteCommand[]): void {
  // A layout effect runs before the browser draws the page, so the palette always contains the commands of the visible page.
  useLayoutEffect(() => {
    const key = Symbol("commands");
    registeredCommands.set(key, commands);
    return () => void registeredCommands.delete(key);
  }, [commands]);
}

/**
 * CSS selector of the elements that the palette offers as commands: buttons, tabs and `summary` elements in the content of the page.
 * Excludes disabled elements, elements in list rows, and elements whose title begins with a keyboard shortcut.
 */
const OFFERED_BUTTONS_SELECTOR =
  '#content :is(button, summary):not(:disabled, li *, tr *, [role="row"] *, [title^="Ctrl"], [title^="Alt"])';

function getCommandName(element: HTMLElement): string {
  const words = (element.getAttribute("aria-label") ?? element.textContent).trim();
  return element.role === "tab" ? `Show the panel ${words}` : words;
}

function findScreenCommands(): PaletteCommand[] {
  return [...document.querySelectorAll<HTMLElement>(OFFERED_BUTTONS_SELECTOR)]
    .filter((element) => element.checkVisibility() && getCommandName(element) !== "")
    .map((element) => ({ name: getCommandName(element), run: () => element.click() }));
}

/** Returns the commands of the palette. A registered command replaces the command of a button with the same name. */
export function listCommands(): PaletteCommand[] {
  const commands = [...registeredCommands.values()].flat();
  const buttonCommandsByName = new Map(findScreenCommands().map((command) => [command.name, command]));
  for (const { name } of commands) buttonCommandsByName.delete(name);
  return [...buttonCommandsByName.values(), ...commands];
}
