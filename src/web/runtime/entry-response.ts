/** Script `/client/svc-response.js`: adds `Svc.App.V3.Actions.response` to a server run, with or without the client library. */
import { createResponse } from "./response.js";

interface Root {
  Svc?: { App?: { V3?: { Actions?: object } } };
  /**
   * Function that adds `response` to `Svc`; the run's next script calls it once.
   * @param mark property by which the service recognizes a response
   */
  __svcResponse?: (mark: string) => void;
}

const root = globalThis as unknown as Root;
root.__svcResponse = (mark) => {
  delete root.__svcResponse;
  root.Svc ??= {};
  root.Svc.App ??= {};
  root.Svc.App.V3 ??= {};
  root.Svc.App.V3.Actions ??= {};
  Object.assign(root.Svc.App.V3.Actions, { response: createResponse(mark) });
};
