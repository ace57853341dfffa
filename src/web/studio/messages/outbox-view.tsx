/**
 * Page of the app's outbox. Lists the messages with their states, and shows the open message. Also has the forms for the delivery of e-mail
 * and SMS.
 */

import Settings from "icon:settings";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { ReadMessage } from "../documents.js";
import { capitalize, formatExactTime, formatTime } from "../shared/format.js";
import type { MessageDecision, MessageStatus, MessageSummary } from "../shared/model.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import type { PageProps } from "../shell/page-props.js";
import { createHref, parseId } from "../shell/studio-route.js";
import { DeliveryForm } from "./delivery-form.js";
import type { DeliveryChannel } from "./delivery-setting-draft.js";
import { MessageReader } from "./message-reader.js";
import { getMessageStatusLabel } from "./status-label.js";
import { useOutbox } from "./use-outbox.js";

const ICON_PIXELS = 14;

const MESSAGE_STATUSES: MessageStatus[] = [
  "kept",
  "queued",
  "sent",
  "delivered",
  "rejected",
  "bounced",
  "complained",
  "failed",
  "unknown",
];

interface MessageLineProps {
  message: MessageSummary;
  isSelected: boolean;
  openMessage: () => void;
}

function MessageLine({ message, isSelected, openMessage }: MessageLineProps) {
  const { kind, status, subject, to, recipients, createdAt } = message;
  const first = to[0]?.name || to[0]?.address;
  return (
    <li>
      <button
        type="button"
        className="message-line"
        aria-current={isSelected ? "true" : undefined}
        onClick={openMessage}
      >
        <b>
          {first}
          {recipients > 1 && ` and ${recipients - 1} more`}
        </b>
        <time dateTime={createdAt} title={formatExactTime(createdAt)}>
          {formatTime(createdAt)}
        </time>
        <span className="gist">{kind === "sms" ? "Text message" : subject || "(no subject)"}</span>
        <span className={`chip ${status}`}>{getMessageStatusLabel(status)}</span>
      </button>
    </li>
  );
}

const isChannel = (item: string | null): item is DeliveryChannel => item === "email" || item === "sms";

export function OutboxView({ api, appId, confirm, route, go, setDirty, email }: PageProps) {
  const status = MESSAGE_STATUSES.find((status) => status === route.query["status"]) ?? null;
  const { messages, hasMore, fault, loadMore, sendDecision } = useOutbox(api, appId, status);
  const client = useQueryClient();
  const openId = parseId(route.item);
  const query = createQueryOptions(ReadMessage, { appId, id: openId ?? 0 });
  const { value, fault: readFault, reload } = useResource({ ...query, enabled: openId !== null });
  const shownMessage = openId === null ? null : (value?.message ?? null);
  const listedUpdatedAt = messages?.find(({ id }) => id === openId)?.updatedAt;
  const shownUpdatedAt = shownMessage?.updatedAt;
  // Reads the open message again when the list shows a change of it, such as another status.
  useEffect(() => {
    if (shownUpdatedAt !== undefined && listedUpdatedAt !== undefined && listedUpdatedAt !== shownUpdatedAt)
      void reload();
  }, [shownUpdatedAt, listedUpdatedAt, reload]);

  const channel = isChannel(route.item) ? route.item : null;
  const goBack = () => go({ item: null, query: route.query });
  const onDecide = async (decision: MessageDecision) => {
    if (!shownMessage) return;
    const message = await sendDecision(shownMessage.id, decision);
    // Cancels a read that started before the person's decision, because its older response would overwrite the changed message.
    await client.cancelQueries({ queryKey: query.queryKey });
    client.setQueryData(query.queryKey, { message });
  };
  return (
    <div className={shownMessage || channel ? "mailbox opened" : "mailbox"}>
      <section className="mailbox-list" aria-label="Outbox">
        <div className="row list-head outbox-head">
          <h2 className="grow">Messages</h2>
          <a
            className="button with-icon"
            title="Set up e-mail"
            aria-label="Set up e-mail"
            href={createHref({ appId, view: "outbox", item: "email" })}
          >
            <Settings size={ICON_PIXELS} aria-hidden /> E-mail
          </a>
          <a
            className="button with-icon"
            title="Set up SMS"
            aria-label="Set up SMS"
            href={createHref({ appId, view: "outbox", item: "sms" })}
          >
            <Settings size={ICON_PIXELS} aria-hidden /> SMS
          </a>
          <label>
            <span className="unseen">Status</span>
            <select
              value={status ?? ""}
              onChange={({ target }) => go({ query: target.value === "" ? {} : { status: target.value } })}
            >
              <option value="">All statuses</option>
              {MESSAGE_STATUSES.map((status) => (
                <option key={status} value={status}>
                  {capitalize(getMessageStatusLabel(status))}
                </option>
              ))}
            </select>
          </label>
        </div>
        <p className="fault" role="alert">
          {fault ?? (openId === null ? null : readFault)}
        </p>
        <ul>
          {messages?.map((message) => (
            <MessageLine
              key={message.id}
              message={message}
              isSelected={message.id === openId}
              openMessage={() => go({ item: String(message.id), query: route.query })}
            />
          ))}
        </ul>
        {messages?.length === 0 && (
          <p className="hint empty">
            {status === null
              ? "No message yet. The e-mails and text messages of the app appear here."
              : "No message has this status."}
          </p>
        )}
        {hasMore && (
          <button type="button" className="link" onClick={loadMore}>
            Load older messages
          </button>
        )}
      </section>
      {channel && <DeliveryForm key={channel} {...{ api, appId, setDirty, email, channel, goBack }} />}
      {shownMessage && (
        <MessageReader message={shownMessage} confirm={confirm} sendDecision={onDecide} goBack={goBack} />
      )}
      {!shownMessage && !channel && (
        <div className="welcome">
          <h2>Choose a message</h2>
          <p>Without an e-mail server or SMS provider, messages are stored here and not sent.</p>
        </div>
      )}
    </div>
  );
}
