/** What can be done right now, by whatever is on the screen: the palette lists it. Draws nothing. */
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

export const commandsNow = (): Command[] => [...registered.values()].flat();
