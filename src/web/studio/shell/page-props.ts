/** Props that the frame passes to every page of Studio. */

import type { Role } from "../../../rules/roles.js";
import type { Actions } from "../actions/use-actions.js";
import type { Api } from "../shared/api.js";
import type { Ask } from "../shared/confirm.js";
import type { App } from "../shared/model.js";
import type { Navigation, Place } from "./place.js";
import type { Membership } from "./session.js";

export interface PageProps {
  api: Api;
  apps: App[];
  app: App;
  appId: number;
  /** The page reads what it shows from `item` and `query`. */
  place: Place;
  go: Navigation["go"];
  setDirty: Navigation["setDirty"];
  ask: Ask;
  actions: Actions;
  /** The app itself has changed: it was renamed or published. */
  reloadApps: () => Promise<void>;
  /** Of all apps: makes apps and people. */
  isAdmin: boolean;
  /** E-mail address of the person; empty for a token. */
  email: string;
  /** Role of the person on the open app. */
  role: Role;
  /** Organizations in which the person has a role. */
  organizations: readonly Membership[];
  /** The person's roles have changed, or an organization was made. */
  reloadRoles: () => Promise<void>;
}
