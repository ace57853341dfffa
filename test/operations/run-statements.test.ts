/** What a run asks of the database, statement by statement: it is what bounds how many of them there are in a second. */
import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { expect } from "chai";
import pg from "pg";
import { startTestService, type TestService } from "../harness/service.js";

/** Told as a request begins, within all that comes of it. */
const REQUEST = "http.server.request.start";
/** Until then the service learns who asks, and what the action is. */
const WARM = 3;
const RUNS = 5;

describe("a run of known code", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService();
  });
  after(() => service.stop());

  /** The statements that each request of the runs' has asked for, by their names or beginnings; not what the service asks by itself meanwhile. */
  async function statementsOf(runs: () => Promise<unknown>): Promise<string[][]> {
    const { query } = pg.Client.prototype;
    const asking = new AsyncLocalStorage<string[]>();
    const asked: string[][] = [];
    const onRequest = () => {
      const texts: string[] = [];
      asked.push(texts);
      asking.enterWith(texts);
    };
    // biome-ignore lint/suspicious/noExplicitAny: whatever the driver is given
    pg.Client.prototype.query = function (this: pg.Client, ...given: any[]) {
      const [{ text = given[0], name = String(text).replaceAll(/\s+/g, " ").slice(0, 60) }] = given;
      asking.getStore()?.push(name);
      return Reflect.apply(query, this, given);
    } as typeof query;
    subscribe(REQUEST, onRequest);
    try {
      await runs();
    } finally {
      unsubscribe(REQUEST, onRequest);
      pg.Client.prototype.query = query;
    }
    return asked;
  }

  /** An action with that body; what runs it that often, one after the other, with the payload `n`. */
  async function runsOf(name: string, does: string): Promise<(count: number, n?: number) => Promise<void>> {
    const code = `async function execute({ payload }) { ${does} }`;
    await service.rest("POST", "/v3/apps/1/actions", {
      body: { name, code, active: true, triggers: [{ trigger: "manual" }] },
    });
    return async (count, n = 1) => {
      for (let run = 0; run < count; run += 1) {
        const { body } = await service.rest("POST", `/v3/apps/1/actions/${name}/runWithResult`, { body: { n } });
        expect(body.result).to.equal(n);
      }
    };
  }

  it("is two statements, of its row and of its end; the disk is waited for once where it can act on nothing", async () => {
    const runs = await runsOf("known", "return payload.n");
    await runs(WARM);
    const asked = await statementsOf(() => runs(RUNS));
    expect(asked).to.deep.equal(Array(RUNS).fill(["accept-target-unflushed", "end-runs-1"]));
  });

  it("waits for the disk twice where it can act, for its row first", async () => {
    const runs = await runsOf("acting", "if (payload.n < 0) await fetch('https://host.example/'); return payload.n");
    await runs(WARM);
    const asked = await statementsOf(() => runs(RUNS));
    expect(asked).to.deep.equal(Array(RUNS).fill(["accept-target", "end-runs-1"]));
  });

  it("has its row on the disk before it begins anew elsewhere, for it needs more than it did before", async () => {
    const runs = await runsOf(
      "growing",
      "for (let line = 1; line < payload.n; line += 1) console.log(line); return payload.n",
    );
    await runs(WARM);
    const [asked] = await statementsOf(() => runs(1, 1_000));
    expect(asked!.slice(0, 2)).to.deep.equal(["accept-target-unflushed", "flush-run"]);
    expect(asked!.at(-1)).to.equal("end-runs-1");
    expect(asked!.slice(2, -1)).to.not.be.empty;
  });

  it("has its row on the disk before who did not wait for its end hears of it", async () => {
    const runs = await runsOf("told", "return payload.n");
    await runs(WARM);
    const asked = await statementsOf(async () => {
      const { http } = await service.rest("POST", "/v3/apps/1/actions/told/run", { body: { n: 1 } });
      expect(http).to.equal(202);
    });
    expect(asked[0]![0]).to.equal("accept-target");
  });
});
