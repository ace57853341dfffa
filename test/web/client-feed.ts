/** Test server of the subscription `clientTriggers`: adds and removes client actions, and interrupts connections. */
import { createHash } from "node:crypto";
import type { Server } from "node:http";
import { buildSchema, GraphQLError } from "graphql";
import { useServer as serveSockets } from "graphql-ws/use/ws";
import { type WebSocket, WebSocketServer } from "ws";
import { compileActionScript } from "../../src/rules/compile-script.js";

export interface TestAction {
  id: number;
  name: string;
  code: string;
  /** Conditions of the action's trigger: the analytics events that start the action. */
  where: object;
  assets?: { name: string; url: string; path: string; integrity?: string }[];
}

const schema = buildSchema(`
  scalar JSON
  type Asset { name: String!, url: String!, path: String!, integrity: String }
  type TriggerWhere { type: String!, data: JSON }
  type Trigger { trigger: String!, where: TriggerWhere }
  type ClientAction { id: Int!, integrity: String!, triggers: [Trigger!]!, assets: [Asset!]! }
  type ClientTriggers { reset: Boolean!, actions: [ClientAction!]!, removed: [Int!]! }
  type Query { none: Int }
  type Subscription { clientTriggers(appId: Int!): ClientTriggers! }
`);

function clientAction(action: TestAction) {
  const hash = createHash("sha256").update(compileActionScript(action)).digest("base64");
  const triggers = [{ trigger: "analytics", where: action.where }];
  return { id: action.id, integrity: `sha256-${hash}`, triggers, assets: action.assets ?? [] };
}

export function createFeed(httpServer: Server) {
  const sockets = new Set<WebSocket>();
  const actions = new Map<number, TestAction>();
  const changes: { reset: false; actions: object[]; removed: number[] }[] = [];
  const connectionParams: unknown[] = [];
  let changeSignal = Promise.withResolvers<void>();

  function publishChange(changed: TestAction[], removed: number[]) {
    changes.push({ reset: false, actions: changed.map(clientAction), removed });
    changeSignal.resolve();
    changeSignal = Promise.withResolvers();
  }

  /** Error status with which the server rejects each subscription. Null: it accepts them. */
  const state = { rejectionStatus: null as string | null };

  async function* clientTriggers() {
    const { rejectionStatus: status } = state;
    if (status !== null) throw new GraphQLError("not yours", { extensions: { status } });
    let deliveredChanges = changes.length;
    yield { clientTriggers: { reset: true, actions: [...actions.values()].map(clientAction), removed: [] } };
    while (true) {
      while (deliveredChanges < changes.length) yield { clientTriggers: changes[deliveredChanges++] };
      await changeSignal.promise;
    }
  }

  const server = new WebSocketServer({ server: httpServer, path: "/graphql" });
  server.on("connection", (socket) => sockets.add(socket.on("close", () => sockets.delete(socket))));
  const onConnect = (context: { connectionParams?: unknown }) => {
    connectionParams.push(context.connectionParams);
  };
  serveSockets({ schema, onConnect, roots: { subscription: { clientTriggers } } }, server);

  return {
    state,
    actions,
    connectionParams,
    set(action: TestAction) {
      actions.set(action.id, action);
      publishChange([action], []);
    },
    remove(id: number) {
      actions.delete(id);
      publishChange([], [id]);
    },
    /** Stops reading from all sockets but leaves them open, as when a network loses all packets. */
    silence() {
      for (const socket of sockets) socket.pause();
    },
    /** Ends all sockets without a close frame, as when a network connection breaks. */
    cut() {
      for (const socket of sockets) socket.terminate();
    },
  };
}
