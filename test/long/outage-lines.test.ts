import { expect } from "chai";
import { startRestartablePostgres } from "../harness/gateway.js";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { until } from "../harness/until.js";
import { get } from "../service/support.js";

describe("the log of a process", () => {
  let service: ServiceProcess;
  const linesOf = (message: string) => service.log.filter(({ msg }) => msg === message);
  afterEach(() => service.clean());

  it("has each line about an outage once: two at its start and two at its end", async () => {
    const postgres = await startRestartablePostgres();
    try {
      service = startProcess({
        ...{ LOG_LEVEL: "info", NPM_PACKAGES: "off" },
        ...{ DATABASE_URL: postgres.url, ROLES: "api,scheduler,runner" },
      });
      const url = await service.ready();
      const before = service.log.length;
      const restore = await postgres.lose("SIGINT");
      await until(async () => (await get(`${url}/health/ready`)).http === 503);
      const request = { headers: { "auth-token": `svc_api_${"a".repeat(43)}` } };
      for (let turn = 0; turn < 20; turn += 1) await fetch(`${url}/v3/apps/1/actions`, request);
      await restore();
      await until(() => linesOf("the database is back").length > 0);
      const lines = service.log.slice(before);
      const [first] = linesOf("the database is away: failures are counted until it is back");
      const [last] = linesOf("the database is back");
      expect(first).to.have.property("err");
      expect(Number(last!["failures"])).to.be.above(20);
      const messages = lines.map(({ msg }) => String(msg)).sort();
      expect(messages, "each once").to.deep.equal([...new Set(messages)]);
      expect(messages).to.deep.equal([
        "database notifications work again",
        "lost the connection for database notifications",
        "the database is away: failures are counted until it is back",
        "the database is back",
      ]);
    } finally {
      await postgres.stop();
    }
  });
});
