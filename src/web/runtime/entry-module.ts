/**
 * Module `/client/svc.mjs`: exports `Svc` with the packages that call the service. Also sets `window.Svc`, because
 * packages and actions expect this global.
 */
import "../packages/svc-communicate.js";
import "../packages/svc-datasources.js";
import "../packages/svc-media.js";
import "../packages/svc-notifications.js";
import "../packages/svc-session.js";
import { createSvc } from "./client.js";

export const Svc = Object.assign(window.Svc ?? {}, createSvc({ scriptUrl: import.meta.url }));
window.Svc = Svc;
