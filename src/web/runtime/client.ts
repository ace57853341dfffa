/** Assembles the client library `Svc` from its parts. The entry files decide how pages and runs load it. */
import { CLIENT_TIMEOUT_MS } from "../../limits.js";
import { createActionsApi } from "./actions.js";
import { createAnalyticsApi } from "./analytics.js";
import { createClientActionRunner } from "./client-runs.js";
import { createConnection } from "./connection.js";
import { CONNECTION_KEY, type PackageConnection } from "./package-connection.js";
import type { Client } from "./public-types.js";
import { createPushDeviceAssigner } from "./push-device.js";
import { createRequestFunctions, type OutgoingTransport } from "./requests.js";
import { globalScope } from "./scope.js";
import { createScriptLoader } from "./scripts.js";
import type { SendToService } from "./service-transport.js";
import { createSessionReader } from "./session.js";
import { createSubscriptionSocket } from "./socket.js";
import { createClientActionStarter } from "./triggers.js";
import { createVisitorSessionManager } from "./visitor.js";

export interface ClientLibraryOptions {
  /** URL from which the library was loaded. */
  scriptUrl?: string;
  /** Nonce of the script element, if the page's content security policy requires one. */
  nonce?: string;
  /** Function that replaces `fetch` for requests to the service, in a server run. */
  sendToService?: SendToService | undefined;
  /** Functions of a server run for requests to other services (`Svc.App.V3.Actions.request`); absent in pages. */
  outgoingTransport?: OutgoingTransport | undefined;
}

export function createSvc({ scriptUrl, nonce, sendToService, outgoingTransport }: ClientLibraryOptions): Client {
  const env = globalScope.ENV ?? {};
  const connection = createConnection(env, scriptUrl, sendToService);
  const scriptLoader = createScriptLoader(connection, nonce);
  const socket = createSubscriptionSocket(connection);
  const timeoutMs = env.clientTimeoutMs ?? CLIENT_TIMEOUT_MS;
  const actionRunner = createClientActionRunner({ connection, loadAction: scriptLoader.load, timeoutMs });
  const { triggers, handleEvent, restart } = createClientActionStarter(
    socket,
    connection,
    (action, event) => void actionRunner.run(action, event),
  );
  const analytics = createAnalyticsApi(connection, handleEvent);
  const { session, discardSession } = createSessionReader(connection);
  // The script env.js sets both values. Pages without env.js receive client actions after their first analytics event.
  if (env.appId !== undefined && env.environment !== undefined) triggers.start();
  const pushDeviceAssigner = createPushDeviceAssigner(connection);
  function forgetSession(): void {
    discardSession();
    pushDeviceAssigner.assign();
  }
  function onSessionChanged(): void {
    forgetSession();
    socket.reconnect();
    restart();
  }
  const visitorSessionManager = createVisitorSessionManager(connection, {
    onSessionChanged,
    onSessionExtended: socket.reconnect,
  });
  const requestFunctions = createRequestFunctions(outgoingTransport);
  const client: Client = {
    configure(configuration) {
      // A session that `init` has started belongs to one token, service and app. If the page sets others, the session's renewal ends.
      if (connection.configure(configuration)) visitorSessionManager.stop();
      onSessionChanged();
    },
    init: visitorSessionManager.init,
    session,
    App: {
      V3: { Actions: { ...createActionsApi(connection), request: requestFunctions.request } },
      Analytics: analytics,
      Triggers: triggers,
      Settings: requestFunctions.settings,
    },
  };
  const { appId, request, lines, exchange } = connection;
  const packageConnection: PackageConnection = {
    appId,
    request,
    lines,
    exchange,
    follow: socket.follow,
    forgetSession,
  };
  // The property is enumerable, so that Object.assign copies the connection to an existing `window.Svc`.
  return Object.assign(client, { [CONNECTION_KEY]: Object.freeze(packageConnection) });
}
