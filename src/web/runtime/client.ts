/** Puts the client library together. Knows neither how it was loaded nor under which name it is found. */
import { CLIENT_TIMEOUT_MS } from "../../limits.js";
import { createActions } from "./actions.js";
import { createAnalytics } from "./analytics.js";
import { createClientRuns } from "./client-runs.js";
import { createConnection } from "./connection.js";
import { CONNECTION, type PackageConnection } from "./package-connection.js";
import type { Client } from "./public-types.js";
import { createRequests, type OutgoingWay } from "./requests.js";
import { scope } from "./scope.js";
import { createScripts } from "./scripts.js";
import type { SendToService } from "./service-way.js";
import { createSession } from "./session.js";
import { createSocket } from "./socket.js";
import { createTriggers } from "./triggers.js";
import { createVisitor } from "./visitor.js";

/** How the library came into the page. */
export interface Loading {
  /** Its own address. */
  from?: string;
  /** Of the script element, where the page's policy asks for one. */
  nonce?: string;
  /** A way to the service that is no `fetch`. */
  send?: SendToService | undefined;
  /** A way to other services. */
  outgoing?: OutgoingWay | undefined;
}

export function createSvc({ from, nonce, send, outgoing }: Loading): Client {
  const env = scope.ENV ?? {};
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
  // The service's bootstrap script names the environment; a page without it may want the operations alone.
  if (env.appId !== undefined && env.environment !== undefined) triggers.start();
  function changed(): void {
    forget();
    socket.restart();
    restart();
  }
  const visitor = createVisitor(connection, { changed, prolonged: socket.restart });
  const requests = createRequests(outgoing);
  const client: Client = {
    configure(configuration) {
      visitor.stop();
      connection.configure(configuration);
      changed();
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
  const ofPackages: PackageConnection = {
    appId,
    request,
    lines,
    exchange,
    follow: socket.follow,
    forgetSession: forget,
  };
  // Copied by Object.assign with all else.
  return Object.assign(client, { [CONNECTION]: Object.freeze(ofPackages) });
}
