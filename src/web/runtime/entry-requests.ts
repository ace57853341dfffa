/**
 * `/client/svc-requests.js`: the two functions of `Svc` that need neither a token nor the rest of the library, for server runs whose code
 * names no others.
 */
import { createRequests } from "./requests.js";
import { scope } from "./scope.js";
import { takeServiceWay } from "./service-way.js";

const { request, settings } = createRequests(takeServiceWay().outgoing);
scope.Svc = Object.assign(scope.Svc ?? {}, { App: { V3: { Actions: { request } }, Settings: settings } }) as never;
