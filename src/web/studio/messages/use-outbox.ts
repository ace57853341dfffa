/** Hook for the messages in the app's outbox, newest first. Reads the list again at an interval. */
import { keepPreviousData } from "@tanstack/react-query";
import { useState } from "react";
import { DecideUnknownMessage, ListMessages } from "../documents.js";
import type { ApiClient } from "../shared/api.js";
import type { Message, MessageDecision, MessageStatus, MessageSummary } from "../shared/model.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";

const PAGE_SIZE = 50;
const REFRESH_INTERVAL_MS = 5_000;

export interface OutboxState {
  /** Messages of the outbox; null until they are loaded for the first time. */
  messages: MessageSummary[] | null;
  hasMore: boolean;
  fault: string | null;
  loadMore(): void;
  sendDecision(id: number, decision: MessageDecision): Promise<Message>;
}

export function useOutbox(api: ApiClient, appId: number, status: MessageStatus | null): OutboxState {
  const [limit, setLimit] = useState(PAGE_SIZE);
  const { value, fault, reload } = useResource({
    ...createQueryOptions(ListMessages, { appId, status, limit }),
    refetchInterval: REFRESH_INTERVAL_MS,
    placeholderData: keepPreviousData,
  });
  return {
    messages: value?.outbox.messages ?? null,
    hasMore: value?.outbox.pagination.hasMore ?? false,
    fault,
    loadMore: () => setLimit((old) => old + PAGE_SIZE),
    async sendDecision(id, decision) {
      const { message } = await api.request(DecideUnknownMessage, { appId, id, decision });
      await reload();
      return message;
    },
  };
}
