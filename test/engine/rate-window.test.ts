/** Tests the sliding window of a rate limit. Instead of waiting, the test moves stored requests back in time. */
import { expect } from "chai";
import { type Db, openDatabase } from "../../src/data/database.js";
import { createRateWindow, type RateLimitDecision, type RateWindow } from "../../src/engine/rate-window.js";
import { type FreshDatabase, freshDatabase } from "../harness/postgres.js";
import { sampleOf } from "../harness/samples.js";

const WINDOW_MS = 60_000;

describe("the rate window", () => {
  let database: FreshDatabase;
  let sources: Db[];
  let windows: RateWindow[];
  let apps = 0;

  before(async () => {
    database = await freshDatabase();
    // Each connection pool stands for one process of the service.
    sources = await Promise.all([openDatabase(database.url, 4), openDatabase(database.url, 4)]);
    windows = sources.map(createRateWindow);
  });
  after(async () => {
    await Promise.all(sources.map((source) => source.destroy()));
    await database.drop();
  });
  beforeEach(() => {
    apps += 1;
  });

  const sendBurst = (calls: number, limit: number): Promise<RateLimitDecision[]> =>
    Promise.all(
      Array.from({ length: calls }, (_, index) =>
        windows[index % 2]!.admitCall(apps, "manage", { limit, windowMs: WINDOW_MS }),
      ),
    );

  const accepted = (answers: RateLimitDecision[]) => answers.filter((answer) => answer.accepted).length;

  async function hits(): Promise<number[]> {
    const [row]: { hits: Date[] }[] = await sources[0]!.query("SELECT hits FROM rate_window WHERE app_id = $1", [apps]);
    return row!.hits.map((hit) => hit.getTime());
  }

  async function passTime(ms: number): Promise<void> {
    await sources[0]!.query(
      `UPDATE rate_window SET hits = ARRAY(
         SELECT hit - $2::int * interval '1 millisecond' FROM unnest(hits) WITH ORDINALITY AS t (hit, place) ORDER BY place)
        WHERE app_id = $1`,
      [apps, ms],
    );
  }

  for (const limit of sampleOf([60, 30, 10], 1, 3)) {
    it(`accepts at most ${limit} in any 60 s of 1,000 calls to two processes, and rejects only when it is full`, async () => {
      const stamps: number[] = [];
      let passed = 0;
      for (let round = 0; round < 50; round += 1) {
        const startedAt = Date.now() + passed;
        const count = accepted(await sendBurst(20, limit));
        stamps.push(...(count === 0 ? [] : (await hits()).slice(-count)).map((hit) => hit + passed));
        if (count < 20) {
          const newest = stamps.at(-1)!;
          const inWindow = stamps.filter((stamp) => stamp > Math.max(newest, startedAt) - WINDOW_MS - 1_000);
          expect(inWindow.length, "a refusal, so the window is full").to.be.at.least(limit);
        }
        const step = ((round * 7919) % 13_000) + 1;
        await passTime(step);
        passed += step;
      }
      expect(stamps.length).to.be.above(3 * limit);
      const spans = stamps.slice(limit).map((stamp, index) => stamp - stamps[index]!);
      expect(Math.min(...spans)).to.be.at.least(WINDOW_MS);
    });
  }

  it("does not count rejected calls", async () => {
    await sendBurst(10, 10);
    expect(accepted(await sendBurst(50, 10))).to.equal(0);
    await passTime(WINDOW_MS);
    expect(accepted(await sendBurst(20, 10))).to.equal(10);
  });

  it("accepts a call at the returned time, and none half a window earlier", async () => {
    const [first] = await sendBurst(3, 3);
    const [{ accepted: taken, remaining, nextAcceptedAt }] = (await sendBurst(1, 3)) as [RateLimitDecision];
    expect({ taken, remaining, nextAcceptedAt }).to.deep.equal({
      taken: false,
      remaining: 0,
      nextAcceptedAt: first!.nextAcceptedAt,
    });
    await passTime(nextAcceptedAt.getTime() - Date.now() - WINDOW_MS / 2);
    expect(accepted(await sendBurst(1, 3))).to.equal(0);
    await passTime(WINDOW_MS / 2);
    expect(accepted(await sendBurst(1, 3))).to.equal(1);
  });

  it("returns how many calls are left and when the next one is possible", async () => {
    const [first, second] = [
      await windows[0]!.admitCall(apps, "manage", { limit: 3, windowMs: WINDOW_MS }),
      await windows[1]!.admitCall(apps, "manage", { limit: 3, windowMs: WINDOW_MS }),
    ];
    const oldest = (await hits())[0]! + WINDOW_MS;
    expect([first, second].map(({ remaining, nextAcceptedAt }) => [remaining, nextAcceptedAt.getTime()])).to.deep.equal(
      [
        [2, oldest],
        [1, oldest],
      ],
    );
  });

  it("applies a limit that was lowered, and one that was raised", async () => {
    await sendBurst(20, 20);
    expect(accepted(await sendBurst(1, 5))).to.equal(0);
    expect(accepted(await sendBurst(20, 30))).to.equal(10);
  });

  it("keeps its order if the machine's clock is set back", async () => {
    await sendBurst(1, 5);
    await passTime(-30_000);
    await sendBurst(4, 5);
    const stamps = await hits();
    expect(stamps).to.deep.equal([...stamps].sort((a, b) => a - b));
    expect(accepted(await sendBurst(1, 5))).to.equal(0);
  });

  it("uses the window of its class", async () => {
    const half = { limit: 2, windowMs: WINDOW_MS / 2 };
    await windows[0]!.admitCall(apps, "communicate", half);
    const { nextAcceptedAt } = await windows[1]!.admitCall(apps, "communicate", half);
    expect(nextAcceptedAt.getTime()).to.equal((await hits())[0]! + WINDOW_MS / 2);
    expect((await windows[0]!.admitCall(apps, "communicate", half)).accepted).to.equal(false);
    await passTime(WINDOW_MS / 2);
    expect((await windows[0]!.admitCall(apps, "communicate", half)).accepted).to.equal(true);
  });

  it("counts apps and classes separately", async () => {
    await sendBurst(5, 5);
    const five = { limit: 5, windowMs: WINDOW_MS };
    const others = [
      await windows[0]!.admitCall(apps, "run", five),
      await windows[0]!.admitCall(apps + 100_000, "manage", five),
    ];
    expect(others.map(({ remaining }) => remaining)).to.deep.equal([4, 4]);
  });
});
