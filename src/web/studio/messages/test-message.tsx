/** Form that sends a test message. It updates the shown status until the e-mail server or the SMS provider has responded. */
import { type FormEvent, useState } from "react";
import { ReadMessage, SendTestEmail, SendTestSms } from "../documents.js";
import { type ApiClient, asApiError } from "../shared/api.js";
import type { MessageStatus } from "../shared/model.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import { createHref } from "../shell/studio-route.js";
import type { DeliveryChannel } from "./delivery-setting-draft.js";
import { getMessageStatusLabel } from "./status-label.js";

/** Interval at which the form reads the message's status while the message is queued. */
const REFRESH_INTERVAL_MS = 1_000;

const STATUS_DESCRIPTIONS: Readonly<Partial<Record<MessageStatus, string>>> = {
  queued: "Waiting to be sent…",
  kept: "Stored, not sent: no server or provider is configured.",
  sent: "The mail server or SMS provider accepted the message.",
  delivered: "Delivered.",
  rejected: "The mail server or SMS provider rejected the message.",
  failed: "The message could not be sent.",
  unknown: "It is not known whether the mail server or SMS provider accepted the message.",
};

interface TestMessageFormProps {
  api: ApiClient;
  appId: number;
  channel: DeliveryChannel;
  /** Initial value of the recipient field: the person's e-mail address for a test e-mail, "" for a test SMS. */
  to: string;
}

function useTestMessage({ api, appId, channel }: TestMessageFormProps) {
  const [receipt, setReceipt] = useState<{ id: number; status: MessageStatus } | null>(null);
  const [sendFault, setSendFault] = useState<string | null>(null);
  const { value, fault } = useResource({
    ...createQueryOptions(ReadMessage, { appId, id: receipt?.id ?? 0 }),
    enabled: receipt?.status === "queued",
    refetchInterval: ({ state: { data } }) => (data && data.message.status !== "queued" ? false : REFRESH_INTERVAL_MS),
  });
  const message = value?.message;
  const detail = message?.detail ?? message?.to[0]?.detail ?? null;
  const sent = receipt && { id: receipt.id, status: message?.status ?? receipt.status, detail };
  const sendTestMessage = async (to: string) => {
    setReceipt(null);
    setSendFault(null);
    const text = "This is a test message from Studio.";
    try {
      const answer =
        channel === "email"
          ? await api.request(SendTestEmail, { appId, options: { to: [{ email: to }], subject: "Test message", text } })
          : await api.request(SendTestSms, { appId, message: { to, body: text } });
      setReceipt(answer.receipt);
    } catch (error) {
      setSendFault(asApiError(error).message);
    }
  };
  return { sent, fault: sendFault ?? fault, sendTestMessage };
}

export function TestMessageForm(props: TestMessageFormProps) {
  const { appId, channel } = props;
  const [to, setTo] = useState(props.to);
  const { sent, fault, sendTestMessage } = useTestMessage(props);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void sendTestMessage(to.trim());
  };
  return (
    <form className="test-message" onSubmit={submit}>
      <h3>Test</h3>
      <div className="row">
        <input
          aria-label={channel === "email" ? "Address for the test" : "Phone number for the test"}
          type={channel === "email" ? "email" : "tel"}
          placeholder={channel === "email" ? "you@example.com" : "+15550100"}
          value={to}
          onChange={(event) => setTo(event.target.value)}
        />
        <button type="submit" disabled={to.trim() === "" || sent?.status === "queued"}>
          Send a test
        </button>
      </div>
      <p className="fault" role="alert">
        {fault}
      </p>
      <p className="row" role="status">
        {sent && (
          <>
            <span className={`chip ${sent.status}`}>{getMessageStatusLabel(sent.status)}</span>
            <span className="grow">{[STATUS_DESCRIPTIONS[sent.status], sent.detail].filter(Boolean).join(" ")}</span>
            <a href={createHref({ appId, view: "outbox", item: String(sent.id) })}>Open the message</a>
          </>
        )}
      </p>
    </form>
  );
}
