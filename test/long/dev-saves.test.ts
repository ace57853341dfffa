/**
 * Measures how long `svc dev` takes from the save of a file to the saved draft. Twelve TypeScript actions of the project share a module.
 * Prints the median, the 95th percentile, and the processor time that the command and the service use for each save.
 */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";
import { createSvcProjects, writeProjectFile } from "../harness/svc-projects.js";
import { until } from "../harness/until.js";

const ACTIONS = 12;
const SAVES = 20;
const START_LIMIT_MS = 120_000;
/** Linux counts the processor time of a process in ticks of 10 ms. */
const TICK_MS = 10;
const POLL_MS = 5;

const actionText = (number: number, text: string): string => `import { defineAction } from "svc";
import { total } from "../../lib/orders";

export const config = defineAction({ active: true, environment: "server", triggers: [{ trigger: "manual" }] });

interface Order { readonly price: number; readonly count: number }

export async function execute({ payload }: { payload: { orders: Order[] } }): Promise<string> {
  return \`${text} ${number}: \${total(payload.orders)}\`;
}
`;
const SHARED_MODULE =
  "export const total = (orders: readonly { price: number; count: number }[]): number =>\n  orders.reduce((sum, { price, count }) => sum + price * count, 0);\n";

/** Returns the processor time that a process has used, in milliseconds. */
function processorTime(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

const quantile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)]!;

describe("svc dev on each save", function () {
  this.timeout(600_000);
  let service: TestService;
  const projects = createSvcProjects(() => service);
  before(async () => {
    service = await startTestService();
  });
  after(async () => {
    await projects.cleanUp();
    await service?.stop();
  });

  it("pushes a draft, and reports the time", async () => {
    const { folder, app } = await projects.newProject();
    writeProjectFile(folder, "lib/orders.ts", SHARED_MODULE);
    for (let number = 1; number <= ACTIONS; number += 1)
      writeProjectFile(folder, `actions/report${number}/action.ts`, actionText(number, "Total"));
    const dev = projects.start(folder, ["dev"]);
    const pushes = () => dev.printed().split("Pushed\n").length - 1;
    await until(() => pushes() === 1, START_LIMIT_MS);
    const times: number[] = [];
    // The service runs in this process, so its processor time is that of `process.pid`.
    const [before, serviceBefore] = [processorTime(dev.child.pid!), processorTime(process.pid)];
    for (let save = 1; save <= SAVES; save += 1) {
      // A separate process checks the types after each push. The pause of a second gives this check time to end.
      const number = 1 + (save % ACTIONS);
      const start = performance.now();
      writeProjectFile(folder, `actions/report${number}/action.ts`, actionText(number, `Sum ${save}`));
      while (pushes() < save + 1) {
        expect(dev.child.exitCode, dev.printed()).to.equal(null);
        await delay(POLL_MS);
      }
      times.push(performance.now() - start);
      await delay(1_000);
    }
    const commandMs = Math.round((processorTime(dev.child.pid!) - before) / SAVES);
    const ofService = Math.round((processorTime(process.pid) - serviceBefore) / SAVES);
    const { body } = await service.rest("GET", `/v1/apps/${app}/manifest`);
    const texts = body.actions.map(
      ({ source }: { source: { files: Record<string, string> } }) => source.files["action.ts"],
    );
    expect(texts.filter((text: string) => text.includes(`Sum ${SAVES} `))).to.have.length(1);
    await dev.end();
    times.sort((a, b) => a - b);
    const [median, high] = [quantile(times, 0.5), quantile(times, 0.95)].map(Math.round);
    console.log(`      ${SAVES} saves: median ${median} ms, 95th percentile ${high} ms`);
    console.log(`      processor time each: command ${commandMs} ms, service and waiting ${ofService} ms`);
  });
});
