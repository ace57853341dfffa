/** Commands that are available on every page: to open pages, apps, and actions by name. */
import { useNavigate } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo } from "react";
import type { Actions } from "../actions/use-actions.js";
import type { App } from "../shared/model.js";
import { type Command, useCommands } from "./commands.js";
import { APP_PARTS, type AppPart, PATHS, VIEW_DETAILS, VIEW_NAMES, type View } from "./views.js";

/** Pages without a command, because they show one item that the URL must name. */
const VIEWS_OF_ONE_ITEM: readonly View[] = ["app", "people", "access"];

interface FrameCommands {
  /** The open page. */
  view: View;
  isAdmin: boolean;
  apps: App[];
  actions: Actions;
  signOut: () => void;
}

export function useFrameCommands({ view, isAdmin, apps, actions, signOut }: FrameCommands): void {
  const { list } = actions;
  const navigate = useNavigate();
  const createAction = useCallback(() => void navigate({ to: PATHS.actions, params: { item: "new" } }), [navigate]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!event.altKey || event.code !== "KeyN" || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      createAction();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [createAction]);
  const commands = useMemo<Command[]>(() => {
    return [
      { name: "New action", keys: "Alt N", run: createAction },
      ...VIEW_NAMES.filter((one) => !VIEWS_OF_ONE_ITEM.includes(one) && (one !== "service" || isAdmin)).map((one) => ({
        name: `Go to ${VIEW_DETAILS[one].label}`,
        run: () => void navigate({ to: PATHS[one], params: { item: undefined } }),
      })),
      ...Object.entries(APP_PARTS).map(([item, label]) => ({
        name: `Go to ${label}`,
        run: () => void navigate({ to: PATHS.app, params: { item: item as AppPart } }),
      })),
      ...(list?.actions ?? []).map(({ id, name }) => ({
        name: `Open ${name}`,
        run: () => void navigate({ to: PATHS.actions, params: { item: id } }),
      })),
      ...apps.map(({ id, name }) => ({
        name: `Switch to the app ${name} · ${id}`,
        run: () => void navigate({ to: PATHS[view], params: { appId: id, item: undefined } }),
      })),
      { name: "Sign out", run: signOut },
    ];
  }, [isAdmin, apps, view, navigate, list, signOut, createAction]);
  useCommands(commands);
}
