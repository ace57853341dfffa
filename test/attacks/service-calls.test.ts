/** Tests code that forges messages of the run's library: it can request no more from the service than `fetch` in a page can. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { type SendResponsePart, ServiceCalls } from "../../src/engine/browser/network/service-calls.js";
import type { ServiceClient, ServiceRequest } from "../../src/engine/browser/run.js";
import { createServiceRequestSender } from "../../src/engine/service-requests.js";

const BASE = "http://service.internal:4000/under/";
const call = (id: number, ...[method, url, headers = {}, body = null]: unknown[]) =>
  `${id}:${JSON.stringify([method, url, headers, body])}`;

/** Creates the handler of a run's calls to the service. The fake service responds when the test allows it. */
function createServiceCalls() {
  const sent: ServiceRequest[] = [];
  const replies: Parameters<SendResponsePart>[] = [];
  const answers: (() => void)[] = [];
  const serviceClient: ServiceClient = {
    base: BASE,
    send(request, signal) {
      sent.push(request);
      return new Promise((resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
        answers.push(() => resolve({ status: 200, headers: {}, text: (async function* () {})() }));
      });
    },
  };
  const admit = async () => ({ headers: {}, reportEnd: () => {} });
  const calls = new ServiceCalls(admit, async (...reply) => void replies.push(reply));
  return { calls, serviceClient, sent, replies, answers };
}

describe("forged calls of the service", () => {
  for (const [title, payload] of Object.entries({
    "no JSON": "1:[",
    "no list": '1:{"0":"GET"}',
    null: "1:null",
    "an address of another host": call(1, "GET", "http://elsewhere.internal:4000/under/x"),
    "an address of another port": call(1, "GET", "http://service.internal:4001/under/x"),
    "an address of another scheme": call(1, "GET", "https://service.internal:4000/under/x"),
    "a way out of the service's path": call(1, "GET", `${BASE}../x`),
    "an escaped way out of the service's path": call(1, "GET", `${BASE}%2e%2e/x`),
    "an address with credentials": call(1, "GET", "http://a:b@service.internal:4000/under/x"),
    "a host that begins like the service": call(1, "GET", "http://service.internal:4000.evil.example/under/x"),
    "no address": call(1, "GET", "under"),
    "a method that is a number": call(1, 7, `${BASE}x`),
    "headers that are a list of lists": call(1, "GET", `${BASE}x`, [["a", "b"]]),
    "a header that is an object": call(1, "GET", `${BASE}x`, { a: {} }),
    "a body that is a number": call(1, "POST", `${BASE}x`, {}, 7),
    "more than a call may hold": call(1, "POST", `${BASE}x`, {}, "x".repeat(256 * 1024)),
  })) {
    it(`get an error without a response: ${title}`, async () => {
      const { calls, serviceClient, sent, replies } = createServiceCalls();
      calls.startRun({ service: serviceClient });
      await calls.receiveMessage(payload);
      expect(sent).to.deep.equal([]);
      expect(replies).to.deep.equal([[1, null, null, true]]);
    });
  }

  for (const payload of ["", "x", ":[]", "-1:[]", "1e3:[]", "99999999999999999:[]"]) {
    it(`are ignored without a number: ${JSON.stringify(payload)}`, async () => {
      const { calls, serviceClient, sent, replies } = createServiceCalls();
      calls.startRun({ service: serviceClient });
      await calls.receiveMessage(payload);
      expect([sent, replies]).to.deep.equal([[], []]);
    });
  }

  it("have six slots, however many arrive, which are released again", async () => {
    const { calls, serviceClient, sent, replies, answers } = createServiceCalls();
    calls.startRun({ service: serviceClient });
    const received = Array.from({ length: 1_000 }, (_, n) => calls.receiveMessage(call(n, "GET", `${BASE}${n}`)));
    await Promise.all(received.slice(6));
    expect(sent.length).to.equal(6);
    expect(replies.length).to.equal(994);
    for (const answer of answers) answer();
    await Promise.all(received);
    void calls.receiveMessage(call(1_001, "GET", `${BASE}x`));
    await new Promise((resolve) => setImmediate(resolve));
    expect(sent.length).to.equal(7);
  });

  it("cancel only an active request, which has one answer and releases its slot; an ID is used once at a time", async () => {
    const { calls, serviceClient, sent, replies } = createServiceCalls();
    calls.startRun({ service: serviceClient });
    const open = Array.from({ length: 6 }, (_, n) => calls.receiveMessage(call(n, "GET", `${BASE}${n}`)));
    await new Promise((resolve) => setImmediate(resolve));
    for (const other of ["7:cancel", "99:cancel", "3:cancelled", '3:"cancel"', "3:CANCEL"])
      await calls.receiveMessage(other);
    await calls.receiveMessage(call(4, "GET", `${BASE}again`));
    // Three of the messages for call 3 are not valid cancellations, and the ID 4 is already in use. Each of these four gets an error.
    expect(replies).to.deep.equal([3, 3, 3, 4].map((id) => [id, null, null, true]));
    replies.length = 0;
    await calls.receiveMessage("3:cancel");
    await open[3];
    await calls.receiveMessage("3:cancel");
    expect(replies).to.deep.equal([[3, null, null, true]]);
    void calls.receiveMessage(call(8, "GET", `${BASE}8`));
    await new Promise((resolve) => setImmediate(resolve));
    expect(sent.map(({ url }) => url.slice(BASE.length))).to.deep.equal(["0", "1", "2", "3", "4", "5", "8"]);
    calls.endRun();
    await Promise.all(open);
    expect(replies).to.have.length(1);
  });

  it("are ignored before a run, after it, and in a run without access to the service", async () => {
    const { calls, serviceClient, sent, replies } = createServiceCalls();
    await calls.receiveMessage(call(1, "GET", `${BASE}before`));
    calls.startRun({ service: serviceClient });
    const open = calls.receiveMessage(call(2, "GET", `${BASE}during`));
    await new Promise((resolve) => setImmediate(resolve));
    calls.endRun();
    await open;
    await calls.receiveMessage(call(3, "GET", `${BASE}after`));
    calls.startRun({});
    await calls.receiveMessage(call(4, "GET", `${BASE}without`));
    expect(sent.map(({ url }) => url)).to.deep.equal([`${BASE}during`]);
    expect(replies).to.deep.equal([]);
  });

  it("are not sent if their run ends while they are checked", async () => {
    const { serviceClient, sent } = createServiceCalls();
    let finishAdmission: () => void = () => {};
    const admit = () =>
      new Promise<{ headers: object; reportEnd: () => void }>((resolve) => {
        finishAdmission = () => resolve({ headers: {}, reportEnd: () => {} });
      });
    const calls = new ServiceCalls(admit as never, async () => {});
    calls.startRun({ service: serviceClient });
    const late = calls.receiveMessage(call(1, "GET", `${BASE}x`));
    calls.endRun();
    calls.startRun({ service: serviceClient });
    finishAdmission();
    await late;
    expect(sent).to.deep.equal([]);
  });
});

describe("requests that Node sends instead of the page", () => {
  let server: Server;
  let base: string;
  let requestCount = 0;

  before(async () => {
    server = createServer((_request, response) => {
      requestCount += 1;
      response.writeHead(200, { "access-control-allow-origin": "*" }).end();
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  for (const [title, changes] of Object.entries<{ method?: string; headers?: Record<string, string> }>({
    "a method that pages have not": { method: "TRACE" },
    "a method in small letters": { method: "get" },
    CONNECT: { method: "CONNECT" },
    "a second request in the method": { method: "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET" },
    "another host in a header": { headers: { Host: "other.internal" } },
    "another's address in a header": { headers: { "X-Forwarded-For": "10.0.0.1" } },
    "another origin": { headers: { Origin: "https://app-2.actions.internal" } },
    "a cookie": { headers: { Cookie: "svc=1" } },
    "a length of its own": { headers: { "Content-Length": "0" } },
    "chunks of its own": { headers: { "Transfer-Encoding": "chunked" } },
    "another connection": { headers: { Connection: "Upgrade" } },
    "a second header in a value": { headers: { "Auth-token": "t\r\nCookie: svc=1" } },
    "a header that HTTP does not know": { headers: { "Auth-token": "€" } },
    "a name with a line end": { headers: { "Auth-token\r\nCookie": "x" } },
  })) {
    it(`never have ${title}`, async () => {
      const requests = createServiceRequestSender(base)!;
      const request = { method: "GET", url: base, headers: {}, body: null, ...changes };
      const refused = await requests.send(request, "https://app-1.actions.internal", new AbortController().signal).then(
        () => null,
        (error: Error) => error.message,
      );
      expect(refused).to.match(/pages cannot send|contains characters that are not allowed/);
      expect(requestCount).to.equal(0);
    });
  }

  it("are not sent if the service uses https, because the browser checks its certificates", () => {
    expect(createServiceRequestSender("https://service.internal/")).to.equal(null);
  });
});
