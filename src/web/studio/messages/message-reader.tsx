/**
 * Shows one sent or stored message: its HTML, its text, its headers and its attachments. The HTML is in a frame that runs no scripts and
 * loads nothing.
 */
import { useState } from "react";
import { asApiError } from "../shared/api.js";
import type { ConfirmFunction } from "../shared/confirm.js";
import { formatExactTime } from "../shared/format.js";
import type { Message, MessageDecision } from "../shared/model.js";
import { TabPanel } from "../shared/tab-list.js";
import { ForEditors } from "../shell/role.js";
import { getMessageStatusLabel } from "./status-label.js";

type BodyView = "HTML" | "Text" | "Headers";

interface MessageReaderProps {
  message: Message;
  confirm: ConfirmFunction;
  sendDecision: (decision: MessageDecision) => Promise<void>;
  goBack: () => void;
}

const DECISION_QUESTIONS = {
  again: {
    title: "Send the message again?",
    explanation: "It is unknown whether the message has arrived. Its recipients may get it twice.",
    confirmLabel: "Send again",
  },
  sent: {
    title: "Mark the message as sent?",
    explanation: "The service does not send the message again.",
    confirmLabel: "Mark as sent",
  },
};

function DecisionButtons({ confirm, sendDecision }: Pick<MessageReaderProps, "confirm" | "sendDecision">) {
  const [fault, setFault] = useState<string | null>(null);
  const confirmAndDecide = async (decision: MessageDecision) => {
    if (!(await confirm(DECISION_QUESTIONS[decision]))) return;
    await sendDecision(decision).catch((error: unknown) => setFault(asApiError(error).message));
  };
  return (
    <div className="notice row">
      <span className="grow">
        It is unknown whether the server accepted the message. The service does not send it again automatically.
      </span>
      <button type="button" onClick={() => void confirmAndDecide("again")}>
        Send again
      </button>
      <button type="button" onClick={() => void confirmAndDecide("sent")}>
        Mark as sent
      </button>
      <p className="fault" role="alert">
        {fault}
      </p>
    </div>
  );
}

function RecipientList({ message }: { message: Message }) {
  return (
    <ul className="recipients">
      {message.to.map(({ address, name, type, status, detail }) => (
        <li key={address} title={detail ?? undefined}>
          {type && type !== "to" && <em>{type} </em>}
          {name ? `${name} <${address}>` : address}
          {status && status !== message.status && <span className={`chip ${status}`}>{status}</span>}
        </li>
      ))}
    </ul>
  );
}

function countAttachmentBytes({ content, encoding }: Message["attachments"][number]): number {
  return encoding === "base64" ? Math.floor((content.replaceAll("=", "").length * 3) / 4) : new Blob([content]).size;
}

/** Returns a data URL with the content of an attachment, for a download link. Studio never opens attachments. */
const createAttachmentUrl = ({ content, encoding }: Message["attachments"][number]) =>
  encoding === "base64"
    ? `data:application/octet-stream;base64,${content}`
    : `data:application/octet-stream,${encodeURIComponent(content)}`;

function AttachmentList({ attachments }: { attachments: Message["attachments"] }) {
  if (attachments.length === 0) return null;
  return (
    <ul className="attachments" aria-label="Attachments">
      {attachments.map((attachment) => (
        <li key={attachment.name}>
          <a href={createAttachmentUrl(attachment)} download={attachment.name}>
            {attachment.name}
          </a>{" "}
          <span className="hint">
            {attachment.type}, {countAttachmentBytes(attachment)} bytes
          </span>
        </li>
      ))}
    </ul>
  );
}

function MessageBody({ message }: { message: Message }) {
  const { html, text, headers } = message;
  const views: BodyView[] = [
    ...(html === null ? [] : (["HTML"] as const)),
    ...(text === null ? [] : (["Text"] as const)),
    ...(message.kind === "email" ? (["Headers"] as const) : []),
  ];
  const [view, setView] = useState<BodyView>(views[0]!);
  return (
    <TabPanel label="Parts" tabNames={views} selectedName={view} selectTab={setView} panelClass="mail-part">
      {view === "HTML" && <iframe title="The message" className="mail-frame" sandbox="" srcDoc={html ?? ""} />}
      {view === "Text" && <pre className="mail-text">{text}</pre>}
      {view === "Headers" && <pre className="mail-text">{formatHeaders(message, headers)}</pre>}
    </TabPanel>
  );
}

function formatHeaders({ subject, fromName, createdAt }: Message, headers: Message["headers"]): string {
  const mainHeaders = {
    From: fromName ?? "(the app's sender)",
    Subject: subject ?? "",
    Date: new Date(createdAt).toUTCString(),
  };
  return [...Object.entries(mainHeaders), ...headers.map(({ name, value }) => [name, value])]
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");
}

export function MessageReader({ message, confirm, sendDecision, goBack }: MessageReaderProps) {
  const { subject, status, kind, createdAt, attempts, detail, dueAt } = message;
  return (
    <article className="reader" aria-label="Message">
      <div className="row">
        <button type="button" className="link narrow-only" onClick={goBack}>
          ← Outbox
        </button>
        <h2 className="grow">{subject ?? (kind === "sms" ? "Text message" : "(no subject)")}</h2>
        <span className={`chip ${status}`}>{getMessageStatusLabel(status)}</span>
      </div>
      <RecipientList message={message} />
      <p className="hint">
        {formatExactTime(createdAt)}
        {attempts > 0 && `, tried ${attempts === 1 ? "once" : `${attempts} times`}`}
        {dueAt && status === "queued" && `, next at ${formatExactTime(dueAt)}`}
      </p>
      {detail && <p className="hint mono">{detail}</p>}
      {status === "kept" && (
        <p className="notice">Stored here and not sent: no e-mail server or SMS provider is configured.</p>
      )}
      {status === "unknown" && (
        <ForEditors>
          <DecisionButtons confirm={confirm} sendDecision={sendDecision} />
        </ForEditors>
      )}
      <MessageBody key={message.id} message={message} />
      <AttachmentList attachments={message.attachments} />
    </article>
  );
}
