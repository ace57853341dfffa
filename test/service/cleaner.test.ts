import { expect } from "chai";
import { pino } from "pino";
import { startCleaner } from "../../src/service/timed-work.js";

describe("the periodic work of a scheduler", () => {
  it("starts each part, also while one of them does not end", async () => {
    const started: string[] = [];
    const stopFunctions: (() => unknown)[] = [];
    const { promise: wordsEnded, resolve: endWords } = Promise.withResolvers<number>();
    const work = (name: string, result: () => Promise<number | null> = async () => null) => ({
      run: () => {
        started.push(name);
        return result();
      },
      stop: () => undefined,
    });
    const [clean, partitions, words, trimming, upkeep, tokens, stages, packages, media] = [
      work("retention"),
      work("partitions"),
      work("words", () => wordsEnded),
      work("trimming"),
      work("upkeep"),
      work("tokens"),
      work("stages"),
      work("packages"),
      work("media"),
    ] as const;
    const plan = {
      config: { roles: new Set(["scheduler"]) },
      log: pino({ level: "silent" }),
      releases: { add: (_name: string, stop: () => unknown) => stopFunctions.push(stop) },
    };
    const operations = {
      retention: { clean: clean.run, createPartitionsAhead: partitions.run, stop: clean.stop },
      runSearch: { indexEndedRuns: words.run, stop: words.stop },
      trimming: { trim: trimming.run, stop: trimming.stop },
      store: { upkeep: { clean: upkeep.run, stop: upkeep.stop }, start: () => undefined },
      tokens: { warnOfExpiry: tokens.run },
      stages: { expire: stages.run, stop: stages.stop },
      packages: { sweep: packages.run },
      media: { sweep: { sweep: media.run, stop: media.stop } },
    };
    const [startedPlan, startedOperations] = [plan, operations] as unknown as Parameters<typeof startCleaner>;
    startCleaner(startedPlan, startedOperations);
    await new Promise(setImmediate);
    endWords(Date.now() + 60_000);
    for (const stop of stopFunctions) await stop();
    expect(started).to.have.members([
      "retention",
      "partitions",
      "words",
      "trimming",
      "upkeep",
      "tokens",
      "stages",
      "packages",
      "media",
    ]);
  });
});
