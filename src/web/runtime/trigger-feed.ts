/** Receives the events of the `clientTriggers` subscription for the client library. */
import type { Connection } from "./connection.js";
import { ClientTriggers, type ClientTriggersSubscription } from "./documents.js";
import type { Socket } from "./socket.js";

/** The first of a subscription has `reset`: forget what you know. Later ones hold what changed. */
export type Change = ClientTriggersSubscription["clientTriggers"];

/** An active `client` or `any` action of this client's copy, less its code. */
export type ClientAction = Change["actions"][number];

export interface FeedListener {
  change(change: Change): void;
  /** The service does not deliver to this caller; nothing more will come. */
  refused(cause: unknown): void;
}

/** @returns what ends it */
export function followClientTriggers(
  socket: Socket,
  { appId }: Pick<Connection, "appId">,
  { change, refused }: FeedListener,
): () => void {
  const next = ({ clientTriggers }: ClientTriggersSubscription) => change(clientTriggers);
  return socket.follow(ClientTriggers, () => ({ appId: appId() }), { next, refused });
}
