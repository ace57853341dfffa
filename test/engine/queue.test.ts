/** The queue that wakes runners, when its connections are lost at the worst of moments. */
import { expect } from "chai";
import { pino } from "pino";
import { createQueue } from "../../src/engine/queue.js";
import { startCuttingProxy } from "../harness/cutting-proxy.js";
import { freshDatabase } from "../harness/postgres.js";

describe("the queue", () => {
  it("outlives a connection that is lost between its first word and its last", async () => {
    const database = await freshDatabase();
    const proxy = await startCuttingProxy(database.url);
    const faults: unknown[] = [];
    const hear = (fault: unknown) => faults.push(fault);
    process.prependListener("unhandledRejection", hear);
    const queue = createQueue({
      url: proxy.url,
      concurrency: 1,
      take: async () => undefined,
      log: pino({ level: "silent" }),
    });
    const withheld = proxy.withhold('LISTEN "jobs:insert"; LISTEN');
    await queue.start();
    const cut = await withheld;
    const stopped = queue.stop();
    cut();
    await stopped;
    process.removeListener("unhandledRejection", hear);
    expect(faults.map(String)).to.be.empty;
    await proxy.stop();
    await database.drop();
  });
});
