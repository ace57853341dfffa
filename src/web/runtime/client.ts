/** Assembles the client library `Svc` from its parts. The entry files decide how pages and runs load it. */
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

/** Where the library was loaded from, and how it reaches the service and other services. */
export interface LibraryLoading {
  /** URL from which the library was loaded. */
  from?: string;
  /** Nonce of the script element, if the page's content security policy requires one. */
  nonce?: string;
  /** Function that replaces `fetch` for requests to the service, in a server run. */
  send?: SendToService | undefined;
  /** Functions of a server run for requests to other services (`Svc.App.V3.Actions.request`); absent in pages. */
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
  // Only pages that load the script env.js have an environment, and run client actions. Other pages can still call `Svc` functions.
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
