/** Script `/client/svc-run.js`: defines `Svc` in a server run, without packages. The run loads the packages that the action lists. */
import { createSvc } from "./client.js";
import { globalScope } from "./scope.js";
import { extractServiceTransport } from "./service-transport.js";

globalScope.Svc = Object.assign(globalScope.Svc ?? {}, createSvc(extractServiceTransport()));
