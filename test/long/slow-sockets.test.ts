import { expect } from "chai";
import { Client } from "pg";
import { addLogEntry } from "../harness/log-entries.js";
import { countOpenSockets, followLogs, type LogSocket } from "../harness/log-sockets.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

/** Size of one entry: far more than the socket buffers of one machine hold. */
const ENTRY_CHARACTERS = 1_000_000;

describe("sockets that do not read", () => {
  let service: TestService;
  let db: Client;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
    db = new Client(service.databaseUrl);
    await db.connect();
  });
  after(async () => {
    await db?.end();
    await service?.stop();
  });

  it("are closed when too much data waits for them; sockets that read get every entry", async () => {
    const open = () => followLogs(service.url, service.tokens.editor, service.appId);
    const sockets = await Promise.all(Array.from({ length: 4 }, open));
    await until(async () => {
      await addLogEntry(db, service.appId, { note: "warm-up" });
      return sockets.every((socket) => socket.received() > 0);
    });
    const [reader, ...stalled] = sockets as [LogSocket, ...LogSocket[]];
    for (const socket of stalled) socket.stall();
    const sent: string[] = [];
    await until(async () => {
      const note = `${"é".repeat(ENTRY_CHARACTERS)}${sent.length}`;
      sent.push(note);
      await addLogEntry(db, service.appId, { note });
      return countOpenSockets(service.url, stalled) === 0;
    });
    const got = () => reader.payloads().filter(({ note }) => note !== "warm-up");
    await until(() => reader.received() >= sent.length && got().length === sent.length);
    expect(got()).to.deep.equal(sent.map((note) => ({ note })));
    expect(countOpenSockets(service.url, [reader])).to.equal(1);
    expect(await Promise.all(stalled.map((socket) => socket.drain()))).to.deep.equal([1006, 1006, 1006]);
    reader.close();
    expect(await reader.drain()).to.equal(1000);
  });
});
