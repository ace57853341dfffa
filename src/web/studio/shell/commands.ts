/** Commands of the palette: those that components have registered, and the buttons on the screen. */
import { useEffect } from "react";

export interface Command {
  name: string;
  /** As a person would press them. */
  keys?: string;
  run: () => void;
}

const registered = new Map<symbol, readonly Command[]>();

/** Offers the commands while the component is there. @param commands keep their identity as long as they mean the same */
export function useCommands(commands: readonly Command[]): void {
  useEffect(() => {
    const key = Symbol("commands");
    registered.set(key, commands);
    return () => void registered.delete(key);
  }, [commands]);
}

/** What the page itself offers: its buttons and tabs. Those of a list's rows are the list's, and some are registered by a key. */
const OFFERED =
  '#content :is(button, summary):not(:disabled, li *, tr *, [role="row"] *, [title^="Ctrl"], [title^="Alt"])';

function nameOf(element: HTMLElement): string {
  const words = (element.getAttribute("aria-label") ?? element.textContent).trim();
  return element.role === "tab" ? `Show the panel ${words}` : words;
}

function offered(): Command[] {
  return [...document.querySelectorAll<HTMLElement>(OFFERED)]
    .filter((element) => element.checkVisibility() && nameOf(element) !== "")
    .map((element) => ({ name: nameOf(element), run: () => element.click() }));
}

/** Each name once, those of the screen first: what a component has registered stands for the button that does the same. */
export function commandsNow(): Command[] {
  const all = [...registered.values()].flat();
  const byName = new Map(offered().map((command) => [command.name, command]));
  for (const { name } of all) byName.delete(name);
  return [...byName.values(), ...all];
}
