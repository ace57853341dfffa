/** Tests that an e-mail of the service is repeated after a temporary failure of the mail server, and only then. */
import { expect } from "chai";
import { createServiceMailer } from "../../src/operations/accounts/service-mail.js";
import { type MailServer, startMailServer } from "../harness/mail-server.js";
import { until } from "../harness/until.js";

const RETRY_DELAYS_MS = [20, 20];
const EMAIL = { to: "ann@example.com", subject: "Reset", text: "Open this link" };

describe("an e-mail to a person of the service", () => {
  let server: MailServer;
  let attempts: number;
  let warnings: object[];
  before(async () => {
    server = await startMailServer();
  });
  after(() => server.stop());
  beforeEach(() => {
    [attempts, warnings] = [0, []];
  });

  const send = (port = server.port) => {
    const config = { smtpUrl: `smtp://127.0.0.1:${port}`, mailFrom: "service@example.com" };
    return createServiceMailer(config, { warn: (facts: object) => warnings.push(facts) }, RETRY_DELAYS_MS)!(EMAIL);
  };
  const answerFirst = (count: number, code: number) => {
    server.behaviour.onRecipient = () => {
      attempts += 1;
      return attempts <= count ? { code, message: "not now" } : null;
    };
  };

  it("arrives once if the mail server rejects it for a while", async () => {
    answerFirst(2, 450);
    await send();
    await server.waitForMessages(1);
    expect([attempts, server.acceptedMessages.length, warnings.length]).to.deep.equal([3, 1, 2]);
  });

  it("is not repeated if the mail server rejects it for good", async () => {
    answerFirst(1, 550);
    await send();
    expect([attempts, warnings]).to.deep.equal([1, [{ code: "EENVELOPE", responseCode: 550, retryInSeconds: null }]]);
  });

  it("is reported after each attempt, with the time until the next one", async () => {
    answerFirst(9, 450);
    await send();
    await until(() => warnings.length === 3);
    const warning = (retryInSeconds: number | null) => ({ code: "EENVELOPE", responseCode: 450, retryInSeconds });
    expect([attempts, warnings]).to.deep.equal([3, [warning(0.02), warning(0.02), warning(null)]]);
  });

  it("arrives if the mail server is unreachable for a while", async () => {
    delete server.behaviour.onRecipient;
    const { port } = server;
    const before = server.acceptedMessages.length;
    server.behaviour.onConnect = () => {
      attempts += 1;
      return attempts === 1 ? { code: 421, message: "restarting" } : null;
    };
    await send(port);
    await server.waitForMessages(before + 1);
    expect([attempts, warnings.length]).to.deep.equal([2, 1]);
  });
});
