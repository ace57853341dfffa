/** `/client/svc.js`: defines `window.Svc`, beside whatever packages put there before. */
import { createSvc } from "./client.js";

const script = document.currentScript;
window.Svc = Object.assign(window.Svc ?? {}, createSvc(script?.nonce || undefined));
