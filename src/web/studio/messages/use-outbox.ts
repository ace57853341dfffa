/** The app's outbox as it stands, newest first, looked at again from time to time while it is seen. Draws nothing. */
import { useCallback, useEffect, useState } from "react";
import { DecideMessage, ListMessages, ReadMessage } from "../documents.js";
import { type Api, type ApiError, asApiError } from "../shared/api.js";
import type { Message, MessageDecision, MessageStatus, MessageSummary } from "../shared/model.js";
import { useRefresh } from "../shared/use-refresh.js";

const PAGE = 50;
const LOOK_AGAIN_MS = 5_000;

export interface Outbox {
  /** null while they are loaded for the first time. */
  messages: MessageSummary[] | null;
  more: boolean;
  fault: ApiError | null;
  loadMore(): void;
  read(id: number): Promise<Message>;
  decide(id: number, decision: MessageDecision): Promise<Message>;
}

export function useOutbox(api: Api, appId: number, status: MessageStatus | null): Outbox {
  const [messages, setMessages] = useState<MessageSummary[] | null>(null);
  const [limit, setLimit] = useState(PAGE);
  const [more, setMore] = useState(false);
  const [fault, setFault] = useState<ApiError | null>(null);

  const load = useCallback(async () => {
    try {
      const { outbox } = await api.ask(ListMessages, { appId, status, limit });
      setMessages(outbox.messages);
      setMore(outbox.pagination.hasMore);
      setFault(null);
    } catch (error) {
      setFault(asApiError(error));
    }
  }, [api, appId, status, limit]);

  useEffect(() => void load(), [load]);
  useRefresh(api, load, LOOK_AGAIN_MS);

  const read = useCallback(async (id: number) => (await api.ask(ReadMessage, { appId, id })).message, [api, appId]);
  const decide = useCallback(
    async (id: number, decision: MessageDecision) => {
      const { message } = await api.ask(DecideMessage, { appId, id, decision });
      await load();
      return message;
    },
    [api, appId, load],
  );
  return { messages, more, fault, loadMore: () => setLimit((old) => old + PAGE), read, decide };
}
