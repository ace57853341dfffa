/** What a workspace is given, and hands on to its dock. */
import type { Api } from "./api.js";
import type { Ask } from "./confirm.js";
import type { App } from "./model.js";
import type { Navigation } from "./place.js";
import type { Actions } from "./use-actions.js";

export interface WorkspaceProps {
  api: Api;
  app: App;
  appId: number;
  id: number | "new";
  actions: Actions;
  ask: Ask;
  go: Navigation["go"];
  setDirty: Navigation["setDirty"];
  onCreated: (id: number) => void;
  onAppPublished: () => void;
}
