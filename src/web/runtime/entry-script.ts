/**
 * Script `/client/svc.js`: defines `window.Svc` for pages, with the packages that call the service. A package that the page loaded before
 * this script stays defined.
 */
import "../packages/svc-communicate.js";
import "../packages/svc-datasources.js";
import "../packages/svc-media.js";
import "../packages/svc-notifications.js";
import "../packages/svc-session.js";
import { createSvc } from "./client.js";

const scriptElement = document.currentScript as HTMLScriptElement | null;
window.Svc = Object.assign(
  window.Svc ?? {},
  createSvc({ scriptUrl: scriptElement?.src, nonce: scriptElement?.nonce || undefined }),
);
