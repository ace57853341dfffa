/** Tests that the code of a run cannot fill the log of the service with failing requests. */
import { expect } from "chai";
import { pino } from "pino";
import { OutgoingRequestSender } from "../../src/engine/outgoing.js";
import { ActionError } from "../../src/errors.js";
import { RunRequestSender } from "../../src/operations/requests/run-requests.js";

const ORIGIN = "https://api.example";

describe("failing requests of a run", () => {
  let lines: string[];
  beforeEach(() => {
    lines = [];
  });

  function beginRun(findInUrl: () => Promise<string | null>) {
    const sender = new OutgoingRequestSender(() => Promise.reject(new Error("this test sends no request")));
    const bindings = { getCredential: () => Promise.reject(), getScanner: () => Promise.reject() };
    const log = pino({}, { write: (line: string) => lines.push(line) });
    const { send } = new RunRequestSender({ sender, bindings, log }).beginRun({
      ...{ appId: 1, environment: "server" as const, origins: [ORIGIN], findInUrl },
      ...{ printLine: () => undefined, onHostContacted: () => undefined, startRequestSpan: () => () => undefined },
    });
    return async (text: string) => JSON.parse((await send(text, new AbortController().signal)).head);
  }

  it("are logged once per run", async () => {
    const send = beginRun(() => Promise.reject(new Error("a fault of the service")));
    for (let attempt = 0; attempt < 5; attempt += 1)
      expect((await send(JSON.stringify({ url: ORIGIN }))).slice(0, 2)).to.deep.equal([0, "TRANSPORT"]);
    expect(lines.length).to.equal(1);
  });

  it("are not logged if the code sends no JSON, or if the app caused the error", async () => {
    const changed = new ActionError("EXECUTION_FAILED", "private settings changed too often");
    const send = beginRun(() => Promise.reject(changed));
    expect(await send("undefined")).to.deep.equal([0, "POLICY", "the options must be JSON"]);
    expect((await send(JSON.stringify({ url: ORIGIN }))).slice(0, 2)).to.deep.equal([0, "TRANSPORT"]);
    expect(lines).to.deep.equal([]);
  });
});
