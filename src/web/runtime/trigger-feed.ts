/** Receives the events of the `clientTriggers` subscription for the client library. */
import type { Connection } from "./connection.js";
import { ClientTriggers, type ClientTriggersSubscription } from "./documents.js";
import type { SubscriptionSocket } from "./socket.js";

/**
 * Event of the subscription `clientTriggers`: client actions with their triggers. The first event has `reset: true` and
 * contains all actions. Later events contain only the difference.
 */
export type ClientTriggersUpdate = ClientTriggersSubscription["clientTriggers"];

/** Active action with the environment `client` or `any` that the page can run, without its code. */
export type ClientAction = ClientTriggersUpdate["actions"][number];

export interface ClientTriggersListener {
  onUpdate(update: ClientTriggersUpdate): void;
  /**
   * Called if the service rejects the subscription, for example because the caller lacks a permission. If the reason was the token, the
   * socket retries until the subscription ends, so updates may follow.
   */
  onRejected(cause: unknown): void;
}

/** Subscribes to the app's client actions and their triggers. @returns function that ends the subscription */
export function subscribeToClientTriggers(
  socket: SubscriptionSocket,
  { appId }: Pick<Connection, "appId">,
  { onUpdate, onRejected }: ClientTriggersListener,
): () => void {
  const next = ({ clientTriggers }: ClientTriggersSubscription) => onUpdate(clientTriggers);
  return socket.follow(ClientTriggers, () => ({ appId: appId() }), { next, refused: onRejected });
}
