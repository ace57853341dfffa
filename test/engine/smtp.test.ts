/** Tests the result that the SMTP client reports for each delivery: accepted, refused, or unknown. */
import { connect, createServer, type Server, type Socket } from "node:net";
import { expect } from "chai";
import { createAddressCheckedConnections } from "../../src/engine/checked-connections.js";
import { createSmtpClient, type OutgoingMail, type Smtp, type SmtpServer } from "../../src/engine/smtp.js";
import { type MailServer, startMailServer } from "../harness/mail-server.js";
import { until } from "../harness/until.js";

const NEVER_ABORTED = new AbortController().signal;
const OUTGOING_MAIL: OutgoingMail = {
  from: "shop@example.com",
  to: ["ann@example.com"],
  content: Buffer.from("Message-ID: <1@example.com>\r\nSubject: x\r\n\r\nHello\r\n"),
  maySendContent: async () => true,
  signal: NEVER_ABORTED,
};
const LOOPBACK = "127.0.0.1";

const open = (host: string, port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port }, () => resolve(socket)).once("error", (error) => {
      reject(Object.assign(error, { forbidden: false }));
    });
  });

const to = (port: number, more: Partial<SmtpServer> = {}): SmtpServer => ({
  ...{ host: LOOPBACK, port, secure: false, user: null, password: null, owner: "a test", connect: open },
  ...more,
});

describe("smtp", () => {
  let smtp: Smtp;
  /** Client with a short time limit, for servers that do not respond. */
  let hasty: Smtp;
  let server: MailServer;
  const others: { server: Server; sockets: Set<Socket> }[] = [];

  before(async () => {
    server = await startMailServer();
  });
  after(() => server.stop());
  beforeEach(() => {
    smtp = createSmtpClient({ timeouts: { greetingMs: 60_000, responseMs: 60_000, attemptMs: 60_000 } });
    hasty = createSmtpClient({ timeouts: { greetingMs: 300, responseMs: 300, attemptMs: 1_000 } });
    server.acceptedMessages.length = 0;
    server.behaviour = {};
  });
  afterEach(() => {
    smtp.stop();
    hasty.stop();
    for (const { server: other, sockets } of others.splice(0)) {
      other.close();
      for (const socket of sockets) socket.destroy();
    }
  });

  /** Starts a server that sends only the responses that `onConnect` writes. */
  async function startScriptedServer(onConnect: (socket: Socket) => void): Promise<number> {
    const sockets = new Set<Socket>();
    const started = createServer((socket) => {
      sockets.add(socket.on("error", () => undefined));
      onConnect(socket);
    });
    others.push({ server: started, sockets });
    await new Promise<void>((resolve) => started.listen(0, LOOPBACK, () => resolve()));
    return (started.address() as { port: number }).port;
  }

  /** Returns the connection handler of a server that accepts sender and recipients. It calls `onContent` at the end of the message. */
  const acceptUpToContent = (onContent: (socket: Socket) => void) => (socket: Socket) => {
    socket.write("220 here\r\n");
    let inContent = false;
    socket.on("data", (chunk) => {
      const text = String(chunk);
      if (inContent) {
        if (text.includes("\r\n.\r\n")) onContent(socket);
        return;
      }
      for (const line of text.split("\r\n").filter(Boolean)) {
        inContent ||= line === "DATA";
        socket.write(line === "DATA" ? "354 go on\r\n" : "250 fine\r\n");
      }
    });
  };

  it("names the setting if the server uses no TLS on this port", async () => {
    const outcome = await smtp.deliver(to(server.port, { secure: true }), OUTGOING_MAIL);
    expect(outcome).to.include({
      kind: "refused",
      detail:
        'the TLS connection failed (wrong version number); for a port that uses STARTTLS, such as 587, set "secure" to false',
    });
  });

  it("reports that a message was accepted, and uses the connection again", async () => {
    let connections = 0;
    server.behaviour.onConnect = () => {
      connections += 1;
      return null;
    };
    for (let message = 0; message < 5; message += 1) {
      expect(await smtp.deliver(to(server.port), OUTGOING_MAIL)).to.deep.include({
        kind: "taken",
        accepted: OUTGOING_MAIL.to,
      });
    }
    expect([server.acceptedMessages.length, connections]).to.deep.equal([5, 1]);
  });

  it("reports that nothing was sent if the connection is refused, the server silent, or gone before the content", async () => {
    const silent = await startScriptedServer(() => undefined);
    const full = await startScriptedServer((socket) => socket.end("421 too many of you\r\n"));
    const gone = await startScriptedServer((socket) => socket.write("220 here\r\n", () => socket.destroy()));
    for (const [client, port] of [
      [smtp, 1],
      [hasty, silent],
      [smtp, full],
      [smtp, gone],
    ] as const) {
      const delivery = await client.deliver(to(port), OUTGOING_MAIL);
      expect(delivery, String(port)).to.deep.include({ kind: "refused", permanent: false });
    }
  });

  it("reports an unknown result if the content was sent and no reply arrived", async () => {
    const disconnectingPort = await startScriptedServer(acceptUpToContent((socket) => socket.destroy()));
    expect((await smtp.deliver(to(disconnectingPort), OUTGOING_MAIL)).kind).to.equal("unsure");
    // On a busy machine, a delivery may time out too early. The test repeats it until the server has received the message.
    const kind = await until(async () => {
      let hasContent = false;
      const silent = await startScriptedServer(
        acceptUpToContent(() => {
          hasContent = true;
        }),
      );
      const delivery = await hasty.deliver(to(silent), OUTGOING_MAIL);
      return hasContent && delivery.kind;
    });
    expect(kind).to.equal("unsure");
  });

  it("reports a certain rejection after the content", async () => {
    const outcomeOfRejection = async (code: number) => {
      server.behaviour.onData = () => ({ code, message: "no" });
      return smtp.deliver(to(server.port), OUTGOING_MAIL);
    };
    expect(await outcomeOfRejection(452)).to.deep.include({ kind: "refused", permanent: false, code: 452 });
    expect(await outcomeOfRejection(554)).to.deep.include({ kind: "refused", permanent: true, code: 554 });
  });

  it("sends no content if the message is now assigned to another process", async () => {
    const delivery = await smtp.deliver(to(server.port), { ...OUTGOING_MAIL, maySendContent: async () => false });
    expect(delivery).to.deep.equal({ kind: "fenced" });
    expect(server.acceptedMessages).to.deep.equal([]);
  });

  it("retries each message once if the server has closed a persistent connection", async () => {
    const connections: Socket[] = [];
    const port = await startScriptedServer((socket) => {
      connections.push(socket);
      acceptUpToContent((peer) => peer.write("250 taken\r\n"))(socket);
    });
    const first = await smtp.deliver(to(port), OUTGOING_MAIL);
    expect(first.kind).to.equal("taken");
    connections[0]!.destroy();
    expect((await smtp.deliver(to(port), OUTGOING_MAIL)).kind).to.equal("taken");
    expect(connections).to.have.length(2);
  });

  it("uses a connection only for the app that it was opened for", async () => {
    expect((await smtp.deliver(to(server.port, { owner: "operator" }), OUTGOING_MAIL)).kind).to.equal("taken");
    const forbidden = async () => Promise.reject(Object.assign(new Error("not there"), { forbidden: true }));
    const delivery = await smtp.deliver(to(server.port, { owner: "app 1", connect: forbidden }), OUTGOING_MAIL);
    expect(delivery).to.deep.include({ kind: "refused", permanent: true, isSettingFault: true });
  });

  it("sends no password to another machine without encryption", async () => {
    const lines: string[] = [];
    const port = await startScriptedServer((socket) => {
      socket.write("220 here\r\n");
      socket.on("data", (chunk) => {
        lines.push(String(chunk));
        socket.write("250-fine\r\n250 AUTH PLAIN LOGIN\r\n");
      });
    });
    for (const host of ["mail.example.com", "127.mail.example.com", "127.0.0.1.example.com", "localhost.example.com"]) {
      const elsewhere = { host, user: "shop", password: "a password", connect: () => open(LOOPBACK, port) };
      const delivery = await smtp.deliver(to(port, elsewhere), OUTGOING_MAIL);
      expect(delivery, host).to.deep.include({ kind: "refused", permanent: false });
    }
    expect(lines.join("")).to.not.match(/AUTH/);
  });
});

describe("checked connections", () => {
  const isPublic = (address: string) => address !== LOOPBACK && address !== "10.0.0.1";
  const resolve = async (name: string) => {
    const addresses = name === "two.example" ? ["192.0.2.1", "10.0.0.1"] : [LOOPBACK];
    return addresses.map((address) => ({ address, family: 4 }));
  };
  const connections = createAddressCheckedConnections({ mayReach: isPublic, resolve });

  it("reject a name with a forbidden address, a forbidden address, and a forbidden port", async () => {
    const narrow = createAddressCheckedConnections({
      mayReach: () => true,
      mayUsePort: (port) => port === 25,
      resolve,
    });
    for (const [way, host, port] of [
      [connections, "inner.example", 25],
      [connections, "two.example", 25],
      [connections, LOOPBACK, 25],
      [narrow, LOOPBACK, 6379],
    ] as const) {
      const error = await way.connect(host, port).catch((thrown: unknown) => thrown);
      expect(error, host).to.include({ forbidden: true });
    }
  });
});
