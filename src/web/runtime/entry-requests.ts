/**
 * Script `/client/svc-requests.js`: `request` and `Settings.get`, without the rest of the library. Server runs load it if their code uses
 * no other function of `Svc`.
 */
import { createRequests } from "./requests.js";
import { globalScope } from "./scope.js";
import { takeServiceTransport } from "./service-transport.js";

const { request, settings } = createRequests(takeServiceTransport().outgoingTransport);
globalScope.Svc = Object.assign(globalScope.Svc ?? {}, {
  App: { V3: { Actions: { request } }, Settings: settings },
}) as never;
