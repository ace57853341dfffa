/** SMTP server on loopback that stores the accepted messages. A test can make the server reject messages, stay silent or disconnect. */
import { SMTPServer, type SMTPServerOptions } from "smtp-server";

export interface AcceptedMail {
  messageId: string;
  from: string;
  to: string[];
  text: string;
}

type SmtpRefusal = { code: number; message: string };

/** Behaviour of the server for the next messages. By default, it accepts them. */
export interface MailServerBehaviour {
  onRecipient?: (address: string) => SmtpRefusal | null | Promise<SmtpRefusal | null>;
  /** Behaviour after a whole message: reject it, accept it and disconnect without a response, or stay silent. */
  onData?: (mail: AcceptedMail) => SmtpRefusal | "accept and disconnect" | "silence" | null;
  onConnect?: () => SmtpRefusal | null;
  auth?: { user: string; password: string };
}

export interface MailServer {
  port: number;
  /** Accepted messages in order of arrival. A message that was sent twice is listed twice. */
  acceptedMessages: AcceptedMail[];
  behaviour: MailServerBehaviour;
  /** Resolves when the server has accepted at least `count` messages. */
  waitForMessages(count: number): Promise<void>;
  stop(): Promise<void>;
}

const failure = ({ code, message }: SmtpRefusal): Error => Object.assign(new Error(message), { responseCode: code });

function readAll(stream: NodeJS.ReadableStream): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk)).on("end", () => resolve(Buffer.concat(chunks).toString()));
  });
}

export async function startMailServer(behaviour: MailServerBehaviour = {}): Promise<MailServer> {
  const waiting: { count: number; resolve: () => void }[] = [];
  const mail: MailServer = {
    port: 0,
    acceptedMessages: [],
    behaviour,
    async waitForMessages(count) {
      if (mail.acceptedMessages.length >= count) return;
      await new Promise<void>((resolve) => waiting.push({ count, resolve }));
    },
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
  const acceptMessage = (accepted: AcceptedMail) => {
    mail.acceptedMessages.push(accepted);
    for (const { count, resolve } of waiting) if (mail.acceptedMessages.length >= count) resolve();
  };
  const options: SMTPServerOptions = {
    disabledCommands: ["STARTTLS"],
    authOptional: true,
    allowInsecureAuth: true,
    closeTimeout: 100,
    onConnect(_session, done) {
      const refusal = mail.behaviour.onConnect?.();
      done(refusal ? failure(refusal) : null);
    },
    onAuth({ username, password }, _session, done) {
      const { auth } = mail.behaviour;
      if (auth && (username !== auth.user || password !== auth.password)) {
        // Some servers repeat the credentials in their error, so the service must mask them.
        const reason = `535 no such login: ${username} with ${password} or ${Buffer.from(password ?? "").toString("base64")}`;
        return done(failure({ code: 535, message: reason }));
      }
      done(null, { user: username ?? "" });
    },
    onRcptTo({ address }, _session, done) {
      void Promise.resolve(mail.behaviour.onRecipient?.(address)).then((refusal) =>
        done(refusal ? failure(refusal) : null),
      );
    },
    onData(stream, session, done) {
      void readAll(stream).then((text) => {
        const messageId = /^Message-ID: (.*)$/im.exec(text)?.[1]?.trim() ?? "";
        const from = session.envelope.mailFrom ? session.envelope.mailFrom.address : "";
        const received = { messageId, from, to: session.envelope.rcptTo.map(({ address }) => address), text };
        const response = mail.behaviour.onData?.(received) ?? null;
        if (response === "silence") return;
        if (response === null || response === "accept and disconnect") acceptMessage(received);
        if (response === "accept and disconnect") {
          for (const connection of server.connections)
            (connection as unknown as { _socket: { destroy(): void } })._socket.destroy();
          return;
        }
        done(response ? failure(response) : null);
      });
    },
  };
  const server = new SMTPServer(options);
  server.on("error", () => undefined);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  mail.port = (server.server.address() as { port: number }).port;
  return mail;
}
