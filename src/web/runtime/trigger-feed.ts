/** Receives the events of the `clientTriggers` subscription for the client library. */
import type { Connection } from "./connection.js";
import { ClientTriggers, type ClientTriggersSubscription } from "./documents.js";
import type { SubscriptionSocket } from "./socket.js";

/**
 * Change of the app's client actions, from the subscription `clientTriggers`: each action has its triggers. The first
 * change has `reset: true` and contains all actions. Later changes contain only the difference.
 */
export type ClientActionsChange = ClientTriggersSubscription["clientTriggers"];

/** Active action with the environment `client` or `any` that the page can run, without its code. */
export type ClientAction = ClientActionsChange["actions"][number];

export interface ClientActionsListener {
  onChange(change: ClientActionsChange): void;
  /** Called if the service rejects the subscription, for example without permission. No more changes follow. */
  onRejected(cause: unknown): void;
}

/** Subscribes to the app's client actions. @returns function that ends the subscription */
export function subscribeToClientActions(
  socket: SubscriptionSocket,
  { appId }: Pick<Connection, "appId">,
  { onChange, onRejected }: ClientActionsListener,
): () => void {
  const next = ({ clientTriggers }: ClientTriggersSubscription) => onChange(clientTriggers);
  return socket.follow(ClientTriggers, () => ({ appId: appId() }), { next, refused: onRejected });
}
