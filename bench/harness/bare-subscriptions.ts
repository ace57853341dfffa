/**
 * Baseline of the figure `log-fanout`, run as a separate process: a bare graphql-ws server with one subscription. It publishes the messages
 * of the parent process, and sends its URL to the parent.
 */
import { once, setMaxListeners } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createPubSub } from "@graphql-yoga/subscription";
import { buildSchema } from "graphql";
import { useServer as serveSockets } from "graphql-ws/use/ws";
import { WebSocketServer } from "ws";

const bareSchema = buildSchema(`
  scalar JSON
  type LogEntry { id: Int!, type: String!, createdAt: String!, data: JSON! }
  type Query { none: Int }
  type Subscription { actionLogAdded(appId: Int!): LogEntry! }
`);

const eventTarget = new EventTarget();
setMaxListeners(0, eventTarget);
const entryFeed = createPubSub<{ entry: [{ actionLogAdded: object }] }>({ eventTarget });
const rootResolvers = { subscription: { actionLogAdded: () => entryFeed.subscribe("entry") } };

const httpServer = createServer();
serveSockets(
  { schema: bareSchema, roots: rootResolvers },
  new WebSocketServer({ server: httpServer, path: "/graphql" }),
);
process.on("message", (entry: object) => entryFeed.publish("entry", { actionLogAdded: entry }));
process.once("disconnect", () => process.exit(0));
httpServer.listen(0, "127.0.0.1");
await once(httpServer, "listening");
process.send!(`http://127.0.0.1:${(httpServer.address() as AddressInfo).port}`);
