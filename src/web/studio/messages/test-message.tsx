/** Sends a test message and shows what becomes of it, until the server or the provider has answered. */
import { type FormEvent, useEffect, useState } from "react";
import { ReadMessage, SendTestEmail, SendTestSms } from "../documents.js";
import { type Api, asApiError } from "../shared/api.js";
import type { MessageStatus } from "../shared/model.js";
import { hrefOf } from "../shell/place.js";
import type { Channel } from "./delivery-draft.js";

const LOOK_MS = 1_000;

interface Sent {
  id: number;
  status: MessageStatus;
  detail: string | null;
}

const WORDS: Readonly<Partial<Record<MessageStatus, string>>> = {
  queued: "Waiting to be sent…",
  kept: "Stored, not sent: no server or provider is configured.",
  sent: "The server accepted the message.",
  delivered: "Delivered.",
  rejected: "The server rejected the message.",
  failed: "The message could not be sent.",
};

interface TestMessageProps {
  api: Api;
  appId: number;
  channel: Channel;
  /** Address of the person, to begin with. */
  to: string;
}

function useTest({ api, appId, channel }: TestMessageProps) {
  const [sent, setSent] = useState<Sent | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const id = sent?.id;
  const isOpen = sent?.status === "queued";
  useEffect(() => {
    if (id === undefined || !isOpen) return;
    const timer = setInterval(() => {
      api.ask(ReadMessage, { appId, id }).then(
        ({ message: { status, detail, to } }) => setSent({ id, status, detail: detail ?? to[0]?.detail ?? null }),
        (error: unknown) => setFault(asApiError(error).message),
      );
    }, LOOK_MS);
    return () => clearInterval(timer);
  }, [api, appId, id, isOpen]);
  const send = async (to: string) => {
    setSent(null);
    setFault(null);
    const text = "This is a test message from Studio.";
    try {
      const { receipt } =
        channel === "email"
          ? await api.ask(SendTestEmail, { appId, options: { to: [{ email: to }], subject: "Test message", text } })
          : await api.ask(SendTestSms, { appId, message: { to, body: text } });
      setSent({ id: receipt.id, status: receipt.status, detail: null });
    } catch (error) {
      setFault(asApiError(error).message);
    }
  };
  return { sent, fault, send };
}

export function TestMessage(props: TestMessageProps) {
  const { appId, channel } = props;
  const [to, setTo] = useState(props.to);
  const { sent, fault, send } = useTest(props);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void send(to.trim());
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
            <span className={`chip ${sent.status}`}>{sent.status}</span>
            <span className="grow">{[WORDS[sent.status], sent.detail].filter(Boolean).join(" ")}</span>
            <a href={hrefOf({ appId, view: "outbox", item: String(sent.id) })}>Open the message</a>
          </>
        )}
      </p>
    </form>
  );
}
