/**
 * Serves GraphQL over websockets at /graphql, the path of GraphQL over HTTP. Checks credentials and origins, limits websockets, and closes
 * those whose credential has expired or was revoked.
 */

import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { type ExecutionArgs, execute, GraphQLError, type GraphQLSchema } from "graphql";
import { GRAPHQL_TRANSPORT_WS_PROTOCOL } from "graphql-ws";
import type { Logger } from "pino";
import { WebSocketServer } from "ws";
import { runInBackground } from "../background.js";
import { ActionError } from "../errors.js";
import { BODY_MAX_BYTES } from "../limits.js";
import type { Credentials } from "../operations/access/credentials.js";
import { SocketMessageRateLimiter } from "../operations/access/message-rate.js";
import type { RequestLimiter } from "../operations/access/request-limiter.js";
import type { ServiceMetrics } from "../operations/watch/measures.js";
import type { RequestTracing } from "../operations/watch/tracing.js";
import type { Caller } from "../rules/access.js";
import { getRateLimitKey } from "../rules/address-block.js";
import { serializeJson } from "../rules/json-text.js";
import type { GetClientAddress } from "./address.js";
import { createErrorReply, createGraphqlErrorFormatter, type FormatError } from "./error-reply.js";
import type { FairTaskQueue } from "./fair-task-queue.js";
import type { ActionSubscriptionContext } from "./graphql/action-resolver.js";
import type { ClientActionSubscriptionContext } from "./graphql/client-resolver.js";
import type { GraphqlDocumentChecker } from "./graphql/documents.js";
import type { EntrySubscriptionContext } from "./graphql/entry-resolver.js";
import type { LogSubscriptionContext } from "./graphql/log-resolver.js";
import type { NotificationSubscriptionContext } from "./graphql/notification-resolver.js";
import { findNotPersistedError, findQueryText } from "./graphql/persisted.js";
import type { ConsoleSubscriptionContext } from "./graphql/run-resolver.js";
import type { ResolverContext } from "./graphql/schema.js";
import { SocketsPerAddressLimiter } from "./live/operations.js";
import { CredentialRecheck, type SocketWithToken } from "./live/recheck.js";
import { SharedSubscriptionResults, type SubscriptionResultReceiver } from "./live/shared-results.js";
import { createSocketHandler, type SocketConnectionContext } from "./live/transport.js";
import { getRequestSenderKey, getRequestSenderKeyByAddress } from "./request-sender.js";
import { getWebsocketClosedSignal } from "./response-end.js";
import type { ResponseBudget, ResponseMemoryLimiter } from "./response-memory.js";
import { traceWebsocketOperation } from "./traces.js";
import type { ReadWebsocketUpgradeToken } from "./upgrade-origin.js";

const SOCKET_PATH = "/graphql";
export const SUBSCRIPTIONS_PER_SOCKET_MAX = 100;
/** Interval in milliseconds at which the credentials of all websockets are checked again. */
const RECHECK_INTERVAL_MS = 10_000;
/** Time in milliseconds that a stopping service waits for clients to close their websockets. */
const CLOSE_TIMEOUT_MS = 1_000;
const CONNECTION_INIT_TIMEOUT_MS = 5_000;

/** WebSocket close code of the protocol graphql-transport-ws. The next two are codes of the websocket standard. */
const FORBIDDEN_CLOSE_CODE = 4403;
const GOING_AWAY_CLOSE_CODE = 1001;
const TRY_AGAIN_LATER_CLOSE_CODE = 1013;

/** Event sources of the subscriptions, and the access checks for them. Each operation gets them in its context. */
type SubscriptionSources = Pick<
  LogSubscriptionContext &
    ConsoleSubscriptionContext &
    ClientActionSubscriptionContext &
    ActionSubscriptionContext &
    EntrySubscriptionContext &
    NotificationSubscriptionContext,
  "accessChecks" | "tail" | "console" | "clientFeed" | "actionFeed" | "entries" | "notificationModules"
>;

interface SocketOptions extends SubscriptionSources, ResolverContext {
  schema: GraphQLSchema;
  documents: GraphqlDocumentChecker;
  getClientAddress: GetClientAddress;
  responseMemory: ResponseMemoryLimiter;
  taskQueue: FairTaskQueue;
  limiter: RequestLimiter;
  /**
   * The setting RUNTIME_URL: origin of pages that run authors' code, which has no API. If null, these pages have the service's own origin.
   */
  runtimeUrl: string | null;
  readUpgradeToken: ReadWebsocketUpgradeToken;
  credentials: Credentials;
  measures: Pick<ServiceMetrics, "countRefusal">;
  tracing: RequestTracing;
  graphqlDocuments: "any" | "persisted";
  log: Logger;
}

/** A websocket with its credential. `upgradeToken` is the token of its upgrade request. */
interface SocketCredentialState extends SocketWithToken {
  id: number;
  upgradeToken: string | null;
}

type SocketContext = SocketConnectionContext<SocketCredentialState>;

/** Returns the token that the client sent in the `connection_init` message, otherwise the token of the upgrade request. */
function readConnectionToken({ connectionParams, extra }: SocketContext): string | null {
  const token = connectionParams?.["authToken"];
  return typeof token === "string" ? token : extra.upgradeToken;
}

const createRejectionText = (http: number, body: string): string =>
  [
    `HTTP/1.1 ${http} ${STATUS_CODES[http]}`,
    "Connection: close",
    "Sec-WebSocket-Version: 13",
    "Content-Type: application/json; charset=utf-8",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "",
    body,
  ].join("\r\n");

export interface SocketServer {
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  countSockets(): { open: number; subscriptions: number };
  stop(): Promise<void>;
}

type OperationContext = SubscriptionSources &
  ResolverContext &
  SubscriptionResultReceiver & {
    caller: Caller | null;
    address?: string;
    idempotencyKey: null;
    responseBudget: ResponseBudget;
    getClosedSignal: () => AbortSignal;
    /** Sends the single result of a query or mutation. The result's memory is freed when it has been sent. */
    reply: (result: string) => void;
    /** Frees the operation's slot in `limiter`. Call it after a query or mutation, or when a subscription's event source is open. */
    releaseSlot: () => void;
  };

/** Yields nothing, because `reply` has already sent the result. */
async function* yieldNothing(): AsyncGenerator<never, void, void> {}

/** Replaces graphql-js's `execute` in graphql-ws. Sends the result itself, because graphql-ws would parse each stored JSON text in it. */
async function performOperation(
  args: ExecutionArgs,
  formatError: FormatError,
): Promise<AsyncGenerator<never, void, void>> {
  const { responseBudget: budget, reply, releaseSlot } = args.contextValue as OperationContext;
  try {
    const { errors, ...result } = await execute(args);
    budget.checkResponseSize(result.data);
    const formattedErrors = errors?.map(formatError);
    reply(serializeJson(formattedErrors ? { ...result, errors: formattedErrors } : result));
  } catch (error) {
    reply(serializeJson({ data: null, errors: [formatError(error)] }));
  } finally {
    releaseSlot();
  }
  return yieldNothing();
}

/** Returns an ActionError as the errors of one operation. Throws other errors, so that graphql-ws closes the whole websocket. */
function toOperationErrors(error: unknown): GraphQLError[] {
  if (!(error instanceof ActionError)) throw error;
  return [new GraphQLError(error.message, { originalError: error })];
}

export function createSocketServer({
  schema,
  documents,
  getClientAddress,
  responseMemory,
  taskQueue,
  limiter,
  runtimeUrl,
  readUpgradeToken,
  credentials,
  measures,
  tracing,
  graphqlDocuments,
  log,
  ...sources
}: SocketOptions): SocketServer {
  const formatError = createGraphqlErrorFormatter({ measures, log });
  const results = new SharedSubscriptionResults(responseMemory, log);
  const runtimeHost = runtimeUrl === null ? null : new URL(runtimeUrl).host;
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: BODY_MAX_BYTES,
    handleProtocols: (offeredProtocols) =>
      offeredProtocols.has(GRAPHQL_TRANSPORT_WS_PROTOCOL) ? GRAPHQL_TRANSPORT_WS_PROTOCOL : false,
  });
  const recheck = new CredentialRecheck<SocketContext["extra"]>({
    credentials,
    onChecked(connection) {
      results.recheck(connection, connection.caller);
      if (!connection.caller)
        connection.outbox.callAfterSending(() => connection.socket.close(FORBIDDEN_CLOSE_CODE, "Forbidden"));
    },
  });

  const messageRateLimiter = new SocketMessageRateLimiter();
  const socketsPerAddressLimiter = new SocketsPerAddressLimiter<SocketContext["extra"]>(({ socket }) =>
    socket.close(TRY_AGAIN_LATER_CLOSE_CODE, "Too many idle sockets"),
  );
  let openedSocketCount = 0;

  /**
   * Returns the senders whose rate limits a message counts against: the network address, and an authenticated client's credential at this
   * address.
   */
  function listRatedSenders({ caller, request }: SocketContext["extra"]): string[] {
    const networkAddress = getClientAddress(request);
    const address = getRequestSenderKeyByAddress(networkAddress);
    return caller
      ? [getRateLimitKey({ credentialId: caller.credentialId, address: networkAddress }), address]
      : [address];
  }

  function getCallerAndAddress({ caller, request }: Pick<SocketContext["extra"], "caller" | "request">) {
    const address = getClientAddress(request);
    return { caller, ...(address && { address }) };
  }

  function createOperationContext(
    { extra }: SocketContext,
    id: string,
    queryKey: string,
    releaseSlot: () => void,
  ): OperationContext {
    const messageHead = `{"id":${JSON.stringify(id)},"type":"next","payload":`;
    const sendResult = (result: string | Buffer, onSent: (() => void) | null) =>
      onSent
        ? extra.outbox.sendWithCallback(onSent, messageHead, result, "}")
        : extra.outbox.send(`${messageHead}${result}}`);
    const closeOverloaded = () =>
      extra.socket.close(TRY_AGAIN_LATER_CLOSE_CODE, "Too many large events are being sent");
    const callerAndAddress = getCallerAndAddress(extra);
    const budget = responseMemory.openBudget(extra.caller);
    const reply = (result: string) => extra.outbox.sendWithCallback(budget.close, `${messageHead}${result}}`);
    const getClosedSignal = () => getWebsocketClosedSignal(extra.socket);
    return {
      ...callerAndAddress,
      idempotencyKey: null,
      ...sources,
      socketKey: extra,
      queryKey,
      receiveResult: sendResult,
      onMissedEvent: closeOverloaded,
      responseBudget: budget,
      getClosedSignal,
      reply,
      releaseSlot,
    };
  }

  async function followSubscription(args: ExecutionArgs) {
    try {
      return await results.subscribe(args);
    } finally {
      (args.contextValue as OperationContext).releaseSlot();
    }
  }

  /** True if the client has ended the operation, so that no further step of the operation may start. */
  const isCompleted = ({ subscriptions }: SocketContext, id: string): boolean => !(id in subscriptions);
  const createCompletedErrors = () => [new GraphQLError("the client has already ended this GraphQL operation")];

  const handleSocket = createSocketHandler<SocketCredentialState>(
    {
      schema,
      connectionInitWaitTimeout: CONNECTION_INIT_TIMEOUT_MS,
      subscribe: followSubscription,
      execute: (args) => traceWebsocketOperation(tracing, () => performOperation(args, formatError)),
      async onConnect(context) {
        const { extra } = context;
        extra.token = readConnectionToken(context);
        const { address } = getCallerAndAddress(extra);
        try {
          extra.caller = extra.token === null ? null : await credentials.resolve(extra.token, address);
        } catch (error) {
          if (!(error instanceof ActionError)) throw error;
          extra.socket.close(TRY_AGAIN_LATER_CLOSE_CODE, "Too many unknown tokens");
        }
        // The websocket may have closed while this function waited.
        if (!extra.caller || extra.socket.readyState !== extra.socket.OPEN) return false;
        recheck.add(extra);
        extra.removeByteLimit();
        return true;
      },
      onClose({ extra }) {
        recheck.remove(extra);
      },
      async onSubscribe(context, id, { query: input, variables, operationName, extensions }) {
        const { extra } = context;
        // Counts the operation before the first `await`, so that operations which arrive during the `await` are counted correctly.
        const operation = extra.operations.beginOperation();
        if (extra.operations.count > SUBSCRIPTIONS_PER_SOCKET_MAX) {
          return [
            new GraphQLError(
              `a websocket can have at most ${SUBSCRIPTIONS_PER_SOCKET_MAX} GraphQL operations in progress; end some of them first`,
            ),
          ];
        }
        // `limiter` rejects only if the websocket has closed while the operation waited.
        const releaseSlot = await limiter
          .acquireSlot(getCallerAndAddress(extra), () => getWebsocketClosedSignal(extra.socket))
          .catch(() => null);
        if (!releaseSlot) return createCompletedErrors();
        operation.callWhenEnded(releaseSlot);
        if (isCompleted(context, id)) return createCompletedErrors();
        if (!(await recheck.checkSocket(extra))) return [new GraphQLError("a valid credential is required")];
        const query = findQueryText({ query: input, documentId: extensions?.["documentId"] }) ?? "";
        if (query instanceof GraphQLError) return [query];
        const notPersistedError = findNotPersistedError(query, extra.caller, graphqlDocuments);
        if (notPersistedError) return [notPersistedError];
        const queryKey = JSON.stringify([query, operationName, variables]);
        const sender = getRequestSenderKey(getCallerAndAddress(extra));
        const document = await documents
          .checkInTurn(sender, queryKey.length, { query, operationName, variables })
          .catch(toOperationErrors);
        if (!("kind" in document)) return document;
        if (isCompleted(context, id)) return createCompletedErrors();
        const contextValue = createOperationContext(context, id, queryKey, releaseSlot);
        return { schema, document, variableValues: variables, operationName, contextValue };
      },
      onError: (_context, _id, _payload, errors) => errors.map((error) => formatError(error.originalError ?? error)),
      onNext: (_context, _id, _payload, _args, result) =>
        result.errors && { ...result, errors: result.errors.map(formatError) },
    },
    {
      countMessage: (connection) =>
        messageRateLimiter.countMessage(
          String(connection.id),
          listRatedSenders(connection),
          () => connection.socket.readyState === connection.socket.OPEN,
        ),
      handleInTurn: (connection, handle) =>
        taskQueue.runInTurn(getRequestSenderKey(getCallerAndAddress(connection)), handle),
      countSocket: (connection) =>
        socketsPerAddressLimiter.addSocket(
          getRequestSenderKeyByAddress(getClientAddress(connection.request)),
          connection,
        ),
    },
    log,
  );

  function rejectUpgrade(error: unknown, socket: Duplex): void {
    const { http, body } = createErrorReply(error, log);
    measures.countRefusal(body.status);
    socket.end(createRejectionText(http, JSON.stringify(body)));
  }

  // Without this listener, the server rejects an invalid handshake with HTML.
  server.on("wsClientError", ({ message }, socket) =>
    rejectUpgrade(new ActionError("REQUEST_INVALID", `the websocket handshake is not valid: ${message}`), socket),
  );

  async function acceptUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    let upgradeToken: string | null;
    try {
      upgradeToken = await readUpgradeToken(request.headers);
    } catch (error) {
      rejectUpgrade(error, socket);
      return;
    }
    // The client may have disconnected while the origin was checked.
    if (socket.destroyed) return;
    server.handleUpgrade(request, socket, head, (webSocket) => {
      webSocket.on("error", (error) => log.debug({ err: error }, "a socket failed"));
      openedSocketCount += 1;
      handleSocket(webSocket, request, { id: openedSocketCount, upgradeToken, token: null, caller: null });
    });
  }

  const timer = setInterval(() => runInBackground(recheck.checkAll()), RECHECK_INTERVAL_MS);
  const stopWatching = credentials.watch((id) =>
    runInBackground(id === null ? recheck.checkAll() : recheck.checkCredential(id)),
  );

  return {
    upgrade(request, socket, head) {
      // If the client disconnects before graphql-ws has the websocket, no other code handles the error.
      socket.on("error", () => socket.destroy());
      const [path] = (request.url ?? "").split("?");
      if (path !== SOCKET_PATH || request.headers.host?.toLowerCase() === runtimeHost) {
        rejectUpgrade(new ActionError("NOT_FOUND"), socket);
        return;
      }
      runInBackground(acceptUpgrade(request, socket, head));
    },
    countSockets: () => ({ open: server.clients.size, subscriptions: results.count() }),
    async stop() {
      clearInterval(timer);
      stopWatching();
      for (const client of server.clients) client.close(GOING_AWAY_CLOSE_CODE, "Going away");
      const closeTimer = setTimeout(() => {
        for (const client of server.clients) client.terminate();
      }, CLOSE_TIMEOUT_MS);
      await new Promise((resolve) => server.close(resolve));
      clearTimeout(closeTimer);
    },
  };
}
