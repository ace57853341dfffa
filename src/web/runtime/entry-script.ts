/** `/client/svc.js`: defines `window.Svc`, beside whatever packages put there before. */
import { createSvc } from "./client.js";

const script = document.currentScript as HTMLScriptElement | null;
window.Svc = Object.assign(window.Svc ?? {}, createSvc({ from: script?.src, nonce: script?.nonce || undefined }));
