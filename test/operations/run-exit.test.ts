/**
 * Tests the end of a run. The service scans the outcome for all secrets that were valid until then, even if secrets change during the scan.
 */
import { syncBuiltinESMExports } from "node:module";
import { mock } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { expect } from "chai";
import pino from "pino";
import type { Db } from "../../src/data/database.js";
import { createFailedPageRunOutcome, type PageRunOutcome, type PageRunRequest } from "../../src/engine/browser/run.js";
import type { SecretScanner, SecretScannerCache } from "../../src/engine/secret-scan.js";
import { ActionError } from "../../src/errors.js";
import type { RunRequestSender } from "../../src/operations/requests/run-requests.js";
import { RunExecution } from "../../src/operations/runs/executor.js";
import type { RunEndRecord } from "../../src/operations/runs/finish.js";
import {
  createCancelledRunOutcome,
  LOST_OUTCOME,
  SERVICE_STOPPED_OUTCOME,
} from "../../src/operations/runs/outcomes.js";
import type { RunRepository } from "../../src/operations/runs/run-repository.js";
import { SecretStore } from "../../src/operations/runs/run-secrets.js";
import type { RunRecord } from "../../src/operations/runs/run-types.js";
import type { Settings } from "../../src/operations/settings/settings.js";
import { NO_TRACING } from "../../src/operations/watch/tracing.js";

const SECRET = "a-secret-that-came-late";
const RUN: RunRecord = {
  ...{ id: 1, appId: 1, actionId: 1, copy: "master", trigger: "manual", payload: "{}", secretsVersion: 1 },
  ...{ personId: null, credentialId: null, startedAt: null },
  code: { name: "a", code: "", environment: "server", dependencies: [], assets: [] },
};

const REQUEST = { host: "a.example:443", method: "GET", status: 200, sentBytes: 0, receivedBytes: 1, code: null };
const REQUESTS = [{ ...REQUEST, durationMs: 1 }];

/**
 * Creates an app without secrets, and a function that executes a run. A test adds a secret during the run by changing `app.version`.
 * Records the written ends and the order of the steps.
 */
function createApp(onEnd: (ending: RunEndRecord) => void = () => {}) {
  const app = {
    version: 1,
    endings: [] as RunEndRecord[],
    steps: [] as unknown[],
    read: async () => {},
    mask: async () => {},
  };
  const entries = () => (app.version === 1 ? [] : [["_late", SECRET] as [string, unknown]]);
  const secretValues = {
    readVersion: async () => app.version,
    readSealedKeys: async () => [],
    async read() {
      await app.read();
      return { version: app.version, deletedUpToVersion: 0, privateAndProtected: [], entries: entries() };
    },
  } as unknown as Settings["secretValues"];
  const scannerCache = {
    getScanner: (_app: string, _key: string, secrets: readonly unknown[]): Partial<SecretScanner> => ({
      async findInJson(json) {
        app.steps.push("scan");
        await delay(20);
        return secrets.length > 0 && String(json).includes(SECRET) ? "_late" : null;
      },
      findInUrl: async () => null,
      async maskJson(json) {
        if (secrets.length > 0) await app.mask();
        return secrets.length > 0 ? json.replaceAll(SECRET, "«_late»") : json;
      },
    }),
  } as unknown as SecretScannerCache;
  const repository = {
    async finish(ending: RunEndRecord) {
      app.steps.push("end");
      onEnd(ending);
      const isCurrent = ending.secretsVersion === null || ending.secretsVersion === app.version;
      if (isCurrent) app.endings.push(ending);
      return isCurrent;
    },
  } as unknown as RunRepository;
  const query = async (sql: string, values: unknown[]) => {
    app.steps.push([sql.split(" ")[0], values[1]]);
    return [];
  };
  const db = { isInitialized: true, query } as unknown as Db;
  const store = new SecretStore(secretValues, scannerCache);
  const perform = (
    runPage: (request: PageRunRequest) => void,
    outcome: PageRunOutcome = { ok: true, data: JSON.stringify(SECRET) },
    signal: AbortSignal = new AbortController().signal,
    payload = "{}",
  ) =>
    new RunExecution(
      {
        db,
        repository,
        runPage: async (request) => {
          request.onMode?.("network-isolate");
          runPage(request);
          return outcome;
        },
        secrets: store,
        scripts: {
          prepare: async () => ({
            packages: [],
            sendsRequests: true,
            responseMark: null,
            revokeToken: async () => {},
          }),
        },
        timeoutMs: 1_000,
        measures: { countEndedRun: () => {}, countRequest: () => {} },
        tracing: NO_TRACING,
        apiUrl: "http://localhost",
        serviceRequests: null,
        requests: {
          beginRun: () => ({ send: async () => ({ head: "", text: "" }), records: REQUESTS }),
        } as unknown as RunRequestSender,
        log: pino({ level: "silent" }),
      },
      { ...RUN, payload },
      "holder",
      signal,
    ).execute();
  return { app, store, perform };
}

describe("the end of a run", () => {
  it("is scanned again if a secret was set in the meantime, also if a late request read it first", async () => {
    for (const isAskedLate of [false, true]) {
      const { app, perform } = createApp();
      const outcome = await perform(({ mayRequest }) => {
        app.version = 2;
        if (isAskedLate) setTimeout(() => void mayRequest?.("https://late.example/"), 5);
      });
      expect(outcome).to.have.nested.property("error.name", "SecretLeakError");
      expect(app.endings.map(({ state }) => state)).to.deep.equal(["failed"]);
      expect(app.endings[0]!.data.text).to.not.include(SECRET);
    }
  });

  it("masks the payload for a secret that was set in the meantime, also if a check of a URL has read it before", async () => {
    for (const isAskedFirst of [false, true]) {
      const { app, perform } = createApp();
      const payload = JSON.stringify({ given: SECRET });
      const runPage = ({ mayRequest }: PageRunRequest) => {
        app.version = 2;
        if (isAskedFirst) void mayRequest?.("https://first.example/");
      };
      await perform(runPage, { ok: true, data: "1" }, undefined, payload);
      expect(app.endings.map(({ state }) => state)).to.deep.equal(["completed"]);
      expect(app.endings[0]!.data.text).to.include('"given":"«_late»"');
    }
  });

  it("masks the payload again after the thread that does this has failed", async () => {
    const { app, store } = createApp();
    app.version = 2;
    app.mask = async () => {
      app.mask = async () => {};
      throw new Error("the thread ended");
    };
    const secrets = await store.beginRun(1);
    const error = await secrets.maskPayload(SECRET).catch((reason: unknown) => reason);
    expect(error).to.have.property("message", "the thread ended");
    expect(await secrets.maskPayload(SECRET)).to.equal("«_late»");
  });

  it("has no payload if the secrets could not be read, because it was not searched", async () => {
    const { app, perform } = createApp();
    app.read = async () => {
      throw new ActionError("SETTINGS_INVALID", "the settings cannot be read");
    };
    await perform(() => {}, undefined, undefined, JSON.stringify({ given: SECRET }));
    expect(app.endings.map(({ state }) => state)).to.deep.equal(["failed"]);
    expect(app.endings[0]!.data.text).to.not.include(SECRET);
    expect(JSON.parse(String(app.endings[0]!.data.text)))
      .to.have.property("payload")
      .that.deep.equals({});
    expect(app.endings[0]!.data.payloadAt).to.equal(null);
  });

  it("is written without the output of the run if the secrets change during each scan", async () => {
    const { app, perform } = createApp(() => {
      app.version += 600;
    });
    const outcome = await perform(() => {});
    expect(outcome).to.have.nested.property("error.message").that.includes("changed too often");
    expect(app.endings.map(({ state, secretsVersion }) => [state, secretsVersion])).to.deep.equal([["failed", null]]);
  });

  it("is that of a cancelled run if the secrets change each time", async () => {
    const { app, perform } = createApp(() => {
      app.version += 1;
    });
    const signal = AbortSignal.abort(createCancelledRunOutcome(null));
    const outcome = await perform(() => {}, createFailedPageRunOutcome("cancelled", "AbortError", ""), signal);
    expect(outcome).to.have.nested.property("error.name", "CancelledError");
    expect(app.endings.map(({ state, secretsVersion }) => [state, secretsVersion])).to.deep.equal([
      ["cancelled", null],
    ]);
  });

  for (const [reason, name] of [
    [LOST_OUTCOME, "RunLostError"],
    [SERVICE_STOPPED_OUTCOME, "ShutdownError"],
  ] as const) {
    it(`is a ${name} if the run is aborted for this reason`, async () => {
      const aborted = createFailedPageRunOutcome("cancelled", "AbortError", "");
      const outcome = await createApp().perform(() => {}, aborted, AbortSignal.abort(reason));
      expect(outcome).to.have.nested.property("error.name", name);
    });
  }

  it("is written without the requests of the run if the database refuses its data", async () => {
    const { app, perform } = createApp(({ requests }) => {
      if (requests != null) throw Object.assign(new Error("refused"), { code: "22P05" });
    });
    const outcome = await perform(() => {}, { ok: true, data: "1" });
    expect(outcome).to.have.nested.property("error.name", "ResultError");
    expect(app.endings.map(({ state, requests }) => [state, requests])).to.deep.equal([["failed", null]]);
  });
});

describe("the check of a long result", () => {
  const RESULT = { ok: true, data: JSON.stringify("x".repeat(300_000)) } as const;
  const realTimeout = setTimeout;
  let attempts: number;

  /** Calls `work` before each message to a worker thread. Makes pauses end at once. */
  function interceptThreadMessages(work: (thread: Worker) => void): void {
    const { postMessage } = Worker.prototype;
    mock.method(Worker.prototype, "postMessage", function post(this: Worker, message: unknown) {
      attempts += 1;
      work(this);
      postMessage.call(this, message);
    });
    mock.method(process.getBuiltinModule("node:timers/promises"), "setTimeout", async () => {});
    syncBuiltinESMExports();
  }

  beforeEach(() => {
    attempts = 0;
  });
  afterEach(() => {
    mock.restoreAll();
    syncBuiltinESMExports();
  });

  const failOnce = (thread: Worker) => {
    if (attempts > 1) return;
    thread.emit("error", new Error("no memory"));
    void thread.terminate();
  };

  it("is repeated if its thread fails, so that the run keeps its result", async () => {
    const { app, perform } = createApp();
    interceptThreadMessages(failOnce);
    expect(await perform(() => {}, RESULT)).to.deep.equal(RESULT);
    expect([attempts, app.endings.map(({ state }) => state)]).to.deep.equal([2, ["completed"]]);
  });

  for (const reason of [LOST_OUTCOME, SERVICE_STOPPED_OUTCOME]) {
    it(`is not repeated if the run is aborted with a ${reason.error.name}`, async () => {
      const { app, perform } = createApp();
      interceptThreadMessages(failOnce);
      const error = await perform(() => {}, RESULT, AbortSignal.abort(reason)).catch((caught: unknown) => caught);
      expect(error).to.have.property("message", "no memory");
      expect([attempts, app.endings]).to.deep.equal([1, []]);
    });
  }

  it("makes the run fail if it exceeds its time limit of a minute", async () => {
    const { app, perform } = createApp();
    interceptThreadMessages((thread) => void thread.terminate());
    mock.method(globalThis, "setTimeout", (call: () => void, ms: number, ...values: unknown[]) =>
      realTimeout(call, ms === 60_000 ? 0 : ms, ...(values as [])),
    );
    const outcome = await perform(() => {}, RESULT);
    expect(outcome).to.have.nested.property("error.message").that.includes("exceeded its limit of time");
    expect([attempts, app.endings.map(({ state }) => state)]).to.deep.equal([1, ["failed"]]);
  });
});
