/** GraphQL over websockets on the same port and path: credentials, origin, caps, and the end of sockets whose credential died. */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { GraphQLError, type GraphQLSchema, parse, specifiedRules, validate } from "graphql";
import { type Context, GRAPHQL_TRANSPORT_WS_PROTOCOL } from "graphql-ws";
import { type Extra, useServer as serveSockets } from "graphql-ws/use/ws";
import type { Logger } from "pino";
import { WebSocketServer } from "ws";
import { BODY_MAX_BYTES } from "../limits.js";
import type { RunConsole } from "../operations/console.js";
import type { Credentials } from "../operations/credentials.js";
import type { Gate } from "../operations/gate.js";
import type { LogTail } from "../operations/log-tail.js";
import type { Caller } from "../rules/access.js";
import { tokenIn } from "./caller.js";
import { formatGraphqlError } from "./error-reply.js";
import type { TailContext } from "./graphql/log-resolver.js";
import type { ConsoleContext } from "./graphql/run-resolver.js";

const PATH = "/graphql";
const DOCUMENT_MAX_TOKENS = 5_000;
const SUBSCRIPTIONS_PER_SOCKET = 100;
const RECHECK_MS = 10_000;

/** Close codes of the graphql-transport-ws protocol. */
const FORBIDDEN = 4403;

interface SocketOptions {
  schema: GraphQLSchema;
  credentials: Credentials;
  gate: Gate;
  tail: LogTail;
  console: RunConsole;
  log: Logger;
}

/** graphql-ws keeps this with the socket. */
type Held = { token?: string | null; caller?: Caller | null };

type SocketContext = Context<Record<string, unknown> | undefined, Extra & Partial<Held>>;

/** A page elsewhere may open a socket here, with the cookie of its visitor: only our own pages and non-browsers may. */
function fromForeignPage({ headers }: IncomingMessage): boolean {
  const { origin, host } = headers;
  return origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`;
}

/** The token in the connection's parameters, else on the upgrade request; a foreign page's cookie does not count. */
function tokenOf({ connectionParams, extra }: SocketContext): string | null {
  const given = connectionParams?.["authToken"];
  if (typeof given === "string") return given;
  const { headers } = extra.request;
  return tokenIn("GET", fromForeignPage(extra.request) ? { ...headers, cookie: undefined } : headers);
}

export interface Sockets {
  /** Takes over an upgrade of the HTTP server. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  stop(): Promise<void>;
}

export function createSockets({ schema, credentials, gate, tail, console, log }: SocketOptions): Sockets {
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: BODY_MAX_BYTES,
    handleProtocols: (offered) => (offered.has(GRAPHQL_TRANSPORT_WS_PROTOCOL) ? GRAPHQL_TRANSPORT_WS_PROTOCOL : false),
  });
  const open = new Set<SocketContext>();

  const protocol = serveSockets<Record<string, unknown> | undefined, Held>(
    {
      schema,
      connectionInitWaitTimeout: 5_000,
      async onConnect(context) {
        context.extra.token = tokenOf(context);
        context.extra.caller = context.extra.token === null ? null : await credentials.resolve(context.extra.token);
        if (!context.extra.caller) return false;
        open.add(context);
        return true;
      },
      onClose(context) {
        open.delete(context);
      },
      onSubscribe(context, _id, { query, variables, operationName }) {
        if (Object.keys(context.subscriptions).length > SUBSCRIPTIONS_PER_SOCKET) {
          return [new GraphQLError(`a socket carries at most ${SUBSCRIPTIONS_PER_SOCKET} subscriptions`)];
        }
        try {
          const document = parse(query, { maxTokens: DOCUMENT_MAX_TOKENS });
          const faults = validate(schema, document, specifiedRules);
          if (faults.length > 0) return faults;
          const caller = context.extra.caller ?? null;
          const contextValue: TailContext & ConsoleContext = { caller, idempotencyKey: null, gate, tail, console };
          return { schema, document, variableValues: variables, operationName, contextValue };
        } catch (error) {
          return [error as GraphQLError];
        }
      },
      onError: (_context, _id, _payload, errors) => errors.map((error) => formatGraphqlError(error, log)),
      onNext: (_context, _id, _payload, _args, result) =>
        result.errors && { ...result, errors: result.errors.map((error) => formatGraphqlError(error, log)) },
    },
    server,
  );

  /** A revoked or expired credential ends its sockets. */
  async function recheck(): Promise<void> {
    for (const context of open) {
      const { token, socket } = context.extra;
      const caller = await credentials.resolve(token ?? "").catch(() => context.extra.caller);
      if (caller) context.extra.caller = caller;
      else socket.close(FORBIDDEN, "Forbidden");
    }
  }
  const timer = setInterval(() => void recheck(), RECHECK_MS);

  return {
    upgrade(request, socket, head) {
      const { pathname } = new URL(request.url ?? "/", "http://local");
      if (pathname !== PATH) return void socket.end("HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n");
      server.handleUpgrade(request, socket, head, (upgraded) => server.emit("connection", upgraded, request));
    },
    async stop() {
      clearInterval(timer);
      await protocol.dispose();
      for (const client of server.clients) client.terminate();
      server.close();
    },
  };
}
