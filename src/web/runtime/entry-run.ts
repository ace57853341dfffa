/** `/client/svc-run.js`: defines `Svc` in a server run, without packages: an action has those that it lists. */
import { createSvc } from "./client.js";
import { scope } from "./scope.js";
import { takeServiceWay } from "./service-way.js";

scope.Svc = Object.assign(scope.Svc ?? {}, createSvc(takeServiceWay()));
