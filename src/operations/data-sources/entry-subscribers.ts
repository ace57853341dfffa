/** Subscribers of this process to changes of entries, and the messages that they receive. */
import type { ActionError } from "../../errors.js";
import type { AdmittedRequest } from "../access/access-checks.js";
import type { EntryDifferences } from "./entry-differences.js";
import type { SubscriptionPosition } from "./entry-positions.js";

export interface EntryChangeMessage extends EntryDifferences {
  /** True if the subscriber must read all entries again. This message then lists no changes. */
  reset: boolean;
  /** Position of this message in the stream of changes. A later subscription can resume from this position. */
  position: string;
}

export interface EntrySubscriber {
  request: AdmittedRequest;
  where: unknown;
  /** ID of the last change that was processed for the subscriber; null until the subscription has started. */
  position: number | null;
  /** Position from which the subscriber wants to resume; null to start with new changes. */
  since: SubscriptionPosition | null;
  /** Key of the columns and entries that the subscriber can see. The key changes when the subscriber's rights change. */
  visibilityKey: string;
  sendMessage: (message: EntryChangeMessage) => void;
  endSubscription: (reason: ActionError) => void;
}

export interface DataSourceFeed {
  appId: number;
  id: number;
  subscribers: Set<EntrySubscriber>;
  /** Resolves after all queued reads. Each new read is chained to this promise, so that messages are sent in order. */
  pendingReads: Promise<void>;
}

export const createFeedKey = ({ appId, id }: Pick<DataSourceFeed, "appId" | "id">): string => `${appId}:${id}`;

export const listStartedSubscribers = ({ subscribers }: DataSourceFeed): EntrySubscriber[] =>
  [...subscribers].filter(({ position }) => position !== null);

export function endSubscription(feed: DataSourceFeed, subscriber: EntrySubscriber, reason: ActionError): void {
  if (feed.subscribers.has(subscriber)) subscriber.endSubscription(reason);
}
