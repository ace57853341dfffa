/** `/client/svc.mjs`: exports `Svc`, and defines `window.Svc` for the packages and actions that look for it there. */
import { createSvc } from "./client.js";

export const Svc = Object.assign(window.Svc ?? {}, createSvc({ from: import.meta.url }));
window.Svc = Svc;
