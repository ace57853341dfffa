/** The outbox: messages of the app with their states, one of them opened, and the forms of e-mail and SMS delivery. */
import { useEffect, useState } from "react";
import { asApiError } from "../shared/api.js";
import { exact, moment } from "../shared/format.js";
import type { Message, MessageDecision, MessageStatus, MessageSummary } from "../shared/model.js";
import type { PageProps } from "../shell/page-props.js";
import { hrefOf, idOf } from "../shell/place.js";
import type { Channel } from "./delivery-draft.js";
import { DeliveryForm } from "./delivery-form.js";
import { MessageReader } from "./message-reader.js";
import { useOutbox } from "./use-outbox.js";

const STATUSES: MessageStatus[] = [
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

interface LineProps {
  message: MessageSummary;
  selected: boolean;
  open: () => void;
}

function Line({ message, selected, open }: LineProps) {
  const { kind, status, subject, to, recipients, createdAt } = message;
  const first = to[0]?.name || to[0]?.address;
  return (
    <li>
      <button type="button" className="message-line" aria-current={selected ? "true" : undefined} onClick={open}>
        <b>
          {first}
          {recipients > 1 && ` and ${recipients - 1} more`}
        </b>
        <time dateTime={createdAt} title={exact(createdAt)}>
          {moment(createdAt)}
        </time>
        <span className="gist">{kind === "sms" ? "Text message" : subject || "(no subject)"}</span>
        <span className={`chip ${status}`}>{status}</span>
      </button>
    </li>
  );
}

const isChannel = (item: string | null): item is Channel => item === "email" || item === "sms";

export function OutboxView({ api, appId, ask, place, go, setDirty, email }: PageProps) {
  const status = STATUSES.find((one) => one === place.query["status"]) ?? null;
  const { messages, more, fault, loadMore, read, decide } = useOutbox(api, appId, status);
  const [message, setMessage] = useState<Message | null>(null);
  const [readFault, setReadFault] = useState<string | null>(null);
  const openId = idOf(place.item);
  const open = message?.id === openId ? message : null;
  const listed = messages?.find(({ id }) => id === openId);
  const changed = listed?.updatedAt;

  const show = async (id: number) => {
    try {
      setMessage(await read(id));
      setReadFault(null);
    } catch (error) {
      setReadFault(asApiError(error).message);
    }
  };
  // What is open goes on as the list does.
  // biome-ignore lint/correctness/useExhaustiveDependencies: again when the message has changed, and only then
  useEffect(() => {
    if (openId !== null && (open === null || (changed !== undefined && changed !== open.updatedAt))) void show(openId);
  }, [openId, changed]);

  const channel = isChannel(place.item) ? place.item : null;
  const back = () => go({ item: null, query: place.query });
  const onDecide = async (decision: MessageDecision) => {
    if (open) setMessage(await decide(open.id, decision));
  };
  return (
    <div className={open || channel ? "mailbox opened" : "mailbox"}>
      <section className="mailbox-list" aria-label="Outbox">
        <div className="row list-head">
          <label className="grow">
            <span className="unseen">Status</span>
            <select
              value={status ?? ""}
              onChange={({ target }) => go({ query: target.value === "" ? {} : { status: target.value } })}
            >
              <option value="">every status</option>
              {STATUSES.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </label>
          <a className="button" href={hrefOf({ appId, view: "outbox", item: "email" })}>
            E-mail
          </a>
          <a className="button" href={hrefOf({ appId, view: "outbox", item: "sms" })}>
            SMS
          </a>
        </div>
        <p className="fault" role="alert">
          {fault ?? readFault}
        </p>
        <ul>
          {messages?.map((message) => (
            <Line
              key={message.id}
              message={message}
              selected={message.id === openId}
              open={() => go({ item: String(message.id), query: place.query })}
            />
          ))}
        </ul>
        {messages?.length === 0 && (
          <p className="hint empty">No message yet. What actions send with Svc.Communicate appears here.</p>
        )}
        {more && (
          <button type="button" className="link" onClick={loadMore}>
            Load older messages
          </button>
        )}
      </section>
      {channel && <DeliveryForm key={channel} {...{ api, appId, setDirty, email, channel, back }} />}
      {open && <MessageReader message={open} ask={ask} decide={onDecide} back={back} />}
      {!open && !channel && (
        <div className="welcome">
          <h2>Choose a message</h2>
          <p>Without an e-mail server or SMS provider, messages are stored here and not sent.</p>
        </div>
      )}
    </div>
  );
}
