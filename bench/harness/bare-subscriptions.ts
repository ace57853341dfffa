/**
 * A separate process with graphql-ws as in its documentation: one subscription, fed by the parent's messages. Prints its URL once it
 * listens. The baseline of `log-fanout`.
 */
import { once, setMaxListeners } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createPubSub } from "@graphql-yoga/subscription";
import { buildSchema } from "graphql";
import { useServer as serveSockets } from "graphql-ws/use/ws";
import { WebSocketServer } from "ws";

const schema = buildSchema(`
  scalar JSON
  type LogEntry { id: Int!, type: String!, createdAt: String!, data: JSON! }
  type Query { none: Int }
  type Subscription { actionLogAdded(appId: Int!): LogEntry! }
`);

const eventTarget = new EventTarget();
setMaxListeners(0, eventTarget);
const events = createPubSub<{ entry: [{ actionLogAdded: object }] }>({ eventTarget });
const roots = { subscription: { actionLogAdded: () => events.subscribe("entry") } };

const http = createServer();
serveSockets({ schema, roots }, new WebSocketServer({ server: http, path: "/graphql" }));
process.on("message", (entry: object) => events.publish("entry", { actionLogAdded: entry }));
process.once("disconnect", () => process.exit(0));
http.listen(0, "127.0.0.1");
await once(http, "listening");
process.send!(`http://127.0.0.1:${(http.address() as AddressInfo).port}`);
