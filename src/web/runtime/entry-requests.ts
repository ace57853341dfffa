/**
 * Script `/client/svc-requests.js`: only the functions `request` and `Settings.get` of the client library. Server runs
 * load this script if their code uses no other function of `Svc`.
 */
import { createRequestFunctions } from "./requests.js";
import { globalScope } from "./scope.js";
import { extractServiceTransport } from "./service-transport.js";

const { request, settings } = createRequestFunctions(extractServiceTransport().outgoingTransport);
globalScope.Svc = Object.assign(globalScope.Svc ?? {}, {
  App: { V3: { Actions: { request } }, Settings: settings },
}) as never;
