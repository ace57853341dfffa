/** Assembles the client library `Svc`. It does not depend on how the library was loaded or on its global name. */
import { CLIENT_TIMEOUT_MS } from "../../limits.js";
import { createActions } from "./actions.js";
import { createAnalytics } from "./analytics.js";
import { createClientRuns } from "./client-runs.js";
import { createConnection } from "./connection.js";
import { CONNECTION_KEY, type PackageConnection } from "./package-connection.js";
import type { Client } from "./public-types.js";
import { createRequests, type OutgoingTransport } from "./requests.js";
import { globalScope } from "./scope.js";
import { createScripts } from "./scripts.js";
import type { SendToService } from "./service-way.js";
import { createSession } from "./session.js";
import { createSocket } from "./socket.js";
import { createTriggers } from "./triggers.js";
import { createVisitor } from "./visitor.js";

/** How the page loaded the library, and how the library reaches the service. */
export interface LibraryLoading {
  /** URL from which the library was loaded. */
  from?: string;
  /** Nonce of the script element, if the page's content security policy requires one. */
  nonce?: string;
  /** Function that sends requests to the service instead of `fetch`. */
  send?: SendToService | undefined;
  /** Function that sends requests to other services. */
  outgoing?: OutgoingTransport | undefined;
}

export function createSvc({ from, nonce, send, outgoing }: LibraryLoading): Client {
  const env = globalScope.ENV ?? {};
  const connection = createConnection(env, from, send);
  const scripts = createScripts(connection, nonce);
  const socket = createSocket(connection);
  const timeoutMs = env.clientTimeoutMs ?? CLIENT_TIMEOUT_MS;
  const runs = createClientRuns({ connection, load: scripts.load, timeoutMs });
  const { triggers, handle, restart } = createTriggers(
    socket,
    connection,
    (action, event) => void runs.run(action, event),
  );
  const analytics = createAnalytics(connection, handle);
  const { session, forget } = createSession(connection);
  // Only pages with the script env.js have an environment and run client actions. Other pages can call the operations.
  if (env.appId !== undefined && env.environment !== undefined) triggers.start();
  function onSessionChanged(): void {
    forget();
    socket.restart();
    restart();
  }
  const visitor = createVisitor(connection, { changed: onSessionChanged, prolonged: socket.restart });
  const requests = createRequests(outgoing);
  const client: Client = {
    configure(configuration) {
      visitor.stop();
      connection.configure(configuration);
      onSessionChanged();
    },
    init: visitor.init,
    session,
    App: {
      V3: { Actions: { ...createActions(connection), request: requests.request } },
      Analytics: analytics,
      Triggers: triggers,
      Settings: requests.settings,
    },
  };
  const { appId, request, lines, exchange } = connection;
  const packageConnection: PackageConnection = {
    appId,
    request,
    lines,
    exchange,
    follow: socket.follow,
    forgetSession: forget,
  };
  // An enumerable property, so that Object.assign copies the connection to an existing `window.Svc`.
  return Object.assign(client, { [CONNECTION_KEY]: Object.freeze(packageConnection) });
}
