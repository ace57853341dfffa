/** Table of all REST routes, grouped by resource. */
import { actionRoutes } from "./action-routes.js";
import { aiRoutes } from "./ai-routes.js";
import { alertRoutes } from "./alert-routes.js";
import { appRoutes } from "./app-routes.js";
import { authRoutes } from "./auth-routes.js";
import { bindingRoutes } from "./binding-routes.js";
import { clientRoutes } from "./client-routes.js";
import { dataSourceRoutes } from "./data-source-routes.js";
import { draftRoutes } from "./draft-routes.js";
import { gitRoutes } from "./git-routes.js";
import { historyRoutes } from "./history-routes.js";
import { manifestRoutes } from "./manifest-routes.js";
import { mediaRoutes } from "./media-routes.js";
import { memberRoutes } from "./member-routes.js";
import { messageRoutes } from "./message-routes.js";
import { notificationRoutes } from "./notification-routes.js";
import { peopleRoutes } from "./people-routes.js";
import type { Route } from "./route.js";
import { runRoutes } from "./run-routes.js";
import { sessionRoutes } from "./session-routes.js";
import { settingRoutes } from "./setting-routes.js";
import { appStageRoutes } from "./stage-routes.js";
import { triggerRoutes } from "./trigger-routes.js";
import { versionRoutes } from "./version-routes.js";
import { visitorRoutes } from "./visitor-routes.js";

export const ROUTES: readonly Route[] = [
  ...actionRoutes,
  ...versionRoutes,
  ...runRoutes,
  ...clientRoutes,
  ...triggerRoutes,
  ...historyRoutes,
  ...draftRoutes,
  ...manifestRoutes,
  ...appStageRoutes,
  ...gitRoutes,
  ...settingRoutes,
  ...appRoutes,
  ...visitorRoutes,
  ...peopleRoutes,
  ...memberRoutes,
  ...authRoutes,
  ...dataSourceRoutes,
  ...sessionRoutes,
  ...mediaRoutes,
  ...messageRoutes,
  ...notificationRoutes,
  ...alertRoutes,
  ...bindingRoutes,
  ...aiRoutes,
];
