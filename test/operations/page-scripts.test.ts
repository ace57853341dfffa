import { syncBuiltinESMExports } from "node:module";
import { mock } from "node:test";
import { expect } from "chai";
import { PageScriptLoader } from "../../src/operations/runs/page-scripts.js";
import type { RunRecord } from "../../src/operations/runs/run-types.js";

const RUN = { id: 1, appId: 1, personId: null } as RunRecord;
const ACTION = { code: "return Svc.App.V3.Actions.response({});", dependencies: [], assets: [] };

describe("the scripts of the service's build", () => {
  afterEach(() => {
    mock.restoreAll();
    syncBuiltinESMExports();
  });

  it("are read again after a read that failed, and only until a read succeeds", async () => {
    const results = [new Error("EMFILE: too many open files"), "a script", new Error("a third read")];
    const { mock: reads } = mock.method(process.getBuiltinModule("node:fs/promises"), "readFile", async () => {
      const result = results.shift();
      if (result instanceof Error) throw result;
      return result;
    });
    syncBuiltinESMExports();
    const scripts = new PageScriptLoader({ catalogue: new Map() } as unknown as ConstructorParameters<
      typeof PageScriptLoader
    >[0]);
    const error = await scripts.prepare(RUN, ACTION, 1_000).catch((reason: unknown) => reason);
    expect(error).to.have.property("message", "EMFILE: too many open files");
    for (let run = 0; run < 2; run += 1) {
      const { packages } = await scripts.prepare(RUN, ACTION, 1_000);
      expect(packages[0]).to.include({ source: "a script" });
    }
    expect(reads.callCount()).to.equal(2);
  });
});
