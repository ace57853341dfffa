/** Props that the frame passes to every page of Studio. */

import type { Role } from "../../../rules/roles.js";
import type { Actions } from "../actions/use-actions.js";
import type { Api } from "../shared/api.js";
import type { Confirm } from "../shared/confirm.js";
import type { App } from "../shared/model.js";
import type { Navigation, Place } from "./place.js";
import type { Membership } from "./session.js";

export interface PageProps {
  api: Api;
  apps: App[];
  app: App;
  appId: number;
  /** `item` and `query` of the URL, which determine what the page shows. */
  place: Place;
  go: Navigation["go"];
  setDirty: Navigation["setDirty"];
  confirm: Confirm;
  actions: Actions;
  /** Call this after the app itself was changed, such as renamed or published. */
  reloadApps: () => Promise<void>;
  /** True for an administrator of the service, who can create apps and people. */
  isAdmin: boolean;
  /** E-mail address of the person; "" if a token is signed in. */
  email: string;
  /** Role of the person on the open app. */
  role: Role;
  /** Organizations in which the person has a role. */
  organizations: readonly Membership[];
  /** Call this after the person's roles have changed or an organization was created. */
  reloadRoles: () => Promise<void>;
}
