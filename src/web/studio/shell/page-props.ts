/** Props that Studio's frame (sidebar and top bar) passes to each page. */

import type { Role } from "../../../rules/roles.js";
import type { ActionsState } from "../actions/use-actions.js";
import type { ApiClient } from "../shared/api.js";
import type { ConfirmFunction } from "../shared/confirm.js";
import type { App } from "../shared/model.js";
import type { Membership } from "./session.js";
import type { Navigation, StudioRoute } from "./studio-route.js";

export interface PageProps {
  api: ApiClient;
  apps: App[];
  app: App;
  appId: number;
  /** Page, item and query parameters that the URL names. They determine what the page shows. */
  route: StudioRoute;
  go: Navigation["go"];
  setDirty: Navigation["setDirty"];
  confirm: ConfirmFunction;
  actions: ActionsState;
  /** Reads the list of apps again. Call this after a change of the app itself, such as its name. */
  reloadApps: () => Promise<void>;
  /** True if the person is an administrator of the service, who can create apps and people. */
  isAdmin: boolean;
  /** E-mail address of the signed-in person; "" if the browser is signed in with a token. */
  email: string;
  role: Role;
  organizations: readonly Membership[];
  /** Reads the person's roles and organizations again. Call this after a change of roles, or after an organization was created. */
  reloadRoles: () => Promise<void>;
}
