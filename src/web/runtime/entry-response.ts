/** Script `/client/svc-response.js`: adds `Svc.App.V3.Actions.response` to a server run, with or without the client library. */
import { createResponseFunction } from "./response.js";

interface GlobalWithSvc {
  Svc?: { App?: { V3?: { Actions?: object } } };
  /**
   * Adds `response` to `Svc`. The script that the run loads next calls this function once.
   * @param mark property by which the service recognizes a response
   */
  __svcResponse?: (mark: string) => void;
}

const globalObject = globalThis as unknown as GlobalWithSvc;
globalObject.__svcResponse = (mark) => {
  delete globalObject.__svcResponse;
  globalObject.Svc ??= {};
  globalObject.Svc.App ??= {};
  globalObject.Svc.App.V3 ??= {};
  globalObject.Svc.App.V3.Actions ??= {};
  Object.assign(globalObject.Svc.App.V3.Actions, { response: createResponseFunction(mark) });
};
