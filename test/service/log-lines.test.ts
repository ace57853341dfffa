/** Tests the log lines on exported spans. lifecycle.test.ts tests the lines of a process. */
import { expect } from "chai";
import { pino } from "pino";
import { createExportLog } from "../../src/operations/watch/tracing.js";

describe("the log of exported spans", () => {
  it("has one line a minute while batches fail, with the number of lost spans, and one when they succeed again", () => {
    const lines: Record<string, unknown>[] = [];
    let time = 0;
    const log = pino({}, { write: (line) => void lines.push(JSON.parse(line)) });
    const report = createExportLog("http://collector:4318", log, () => time);
    report({ code: 0 }, 3);
    for (let at = 0; at < 130; at += 1) {
      report({ code: 1, error: new Error("connect ECONNREFUSED") }, 2);
      time += 1_000;
    }
    report({ code: 0 }, 3);
    report({ code: 0 }, 3);
    expect(lines.map(({ msg, lostSpans }) => [msg, lostSpans])).to.deep.equal([
      ["the trace collector does not accept spans", 2],
      ["the trace collector does not accept spans", 122],
      ["the trace collector does not accept spans", 242],
      ["the trace collector accepts spans again", 260],
    ]);
    expect(lines[0]).to.include({ reason: "connect ECONNREFUSED", collector: "http://collector:4318" });
  });
});
