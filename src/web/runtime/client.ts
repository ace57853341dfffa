/** Assembles the client library. Independent of how it was loaded and of its global name. */
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

/** How the page loaded the library. */
export interface Loading {
  /** URL of the library. */
  from?: string;
  /** Nonce of the script element, if the page's policy needs one. */
  nonce?: string;
  /** Transport to the service other than `fetch`. */
  send?: SendToService | undefined;
  /** Transport to other services. */
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
  // The service's bootstrap script names the environment; a page without it may only need the operations.
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
  // Object.assign copies it with the other members.
  return Object.assign(client, { [CONNECTION]: Object.freeze(ofPackages) });
}
