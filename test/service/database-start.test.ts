import { createServer } from "node:net";
import { expect } from "chai";
import { startRestartablePostgres } from "../harness/gateway.js";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { longTest } from "../harness/samples.js";
import { until } from "../harness/until.js";
import { get } from "./support.js";

describe("the start of a process", () => {
  const started: ServiceProcess[] = [];
  const start = (environment: Record<string, string>) => {
    const service = startProcess({ ROLES: "api,scheduler", LOG_LEVEL: "info", NPM_PACKAGES: "off", ...environment });
    started.push(service);
    return service;
  };
  const linesOf = (service: ServiceProcess, message: string) => service.log.filter(({ msg }) => msg === message);
  afterEach(async () => {
    for (const service of started.splice(0)) await service.clean();
  });

  longTest("waits for its database, is live and not ready meanwhile, and logs it in one line", async () => {
    const postgres = await startRestartablePostgres();
    try {
      const restore = await postgres.lose("SIGINT");
      const service = start({ DATABASE_URL: postgres.url });
      const url = await service.listening();
      await until(() => linesOf(service, "waiting for the database").length > 0);
      expect((await get(`${url}/health/live`)).http).to.equal(200);
      const { http, body } = await get(`${url}/health/ready`);
      expect(http).to.equal(503);
      expect(body.failing).to.include("database");
      await restore();
      await service.ready();
      expect((await get(`${url}/health/ready`)).http).to.equal(200);
      expect(linesOf(service, "waiting for the database")).to.have.length(1);
      expect(linesOf(service, "the database responds")).to.have.length(1);
      expect(service.stderr()).to.not.contain("Error");
      service.signal("SIGTERM");
      await service.ended;
    } finally {
      await postgres.stop();
    }
  });

  longTest(
    "reports how many connections it needs if PostgreSQL has none left, and ends at once on SIGTERM",
    async () => {
      const full = createServer((socket) => {
        socket.once("data", () => {
          const fields = "SFATAL\0VFATAL\0C53300\0Msorry, too many clients already\0\0";
          const length = Buffer.alloc(4);
          length.writeInt32BE(fields.length + 4);
          socket.end(Buffer.concat([Buffer.from("E"), length, Buffer.from(fields)]));
        });
      });
      await new Promise<void>((resolve) => full.listen(0, "127.0.0.1", resolve));
      const { port } = full.address() as { port: number };
      const service = start({ DATABASE_URL: `postgres://svc:a-password-7788@127.0.0.1:${port}/svc`, ROLES: "api" });
      const line = await until(() => linesOf(service, "waiting for the database")[0]);
      expect(line["reason"]).to.match(/no connection left: this process needs up to 23\. Raise max_connections/);
      expect(service.stderr()).to.equal("");
      service.signal("SIGTERM");
      expect(await service.ended).to.deep.equal({ code: 0, signal: null });
      expect(JSON.stringify(service.log) + service.stderr()).to.not.contain("a-password-7788");
      full.close();
    },
  );
});
