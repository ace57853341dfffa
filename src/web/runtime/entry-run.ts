/** `/client/svc-run.js`: defines `window.Svc` in a server run, without a package: an action has those that it lists. */
import { createSvc } from "./client.js";

window.Svc = Object.assign(window.Svc ?? {}, createSvc({}));
