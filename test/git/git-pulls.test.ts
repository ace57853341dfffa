/** Tests concurrent pulls of git repositories without a service: slots, changes by other requests, limits of webhooks. */
import { expect } from "chai";
import { pino } from "pino";
import { ActionError } from "../../src/errors.js";
import { createAccessChecks } from "../../src/operations/access/access-checks.js";
import { GitPulls } from "../../src/operations/git/git-pulls.js";
import { GitWebhooks } from "../../src/operations/git/git-webhooks.js";

type GitPullParts = ConstructorParameters<typeof GitPulls>[0];
type ApplyManifest = GitPullParts["manifests"]["apply"];

const PLAN = { created: [], changed: [], removed: [] };
const ROW = { branch: "main", tagPattern: "v*", folder: "", prune: false, credentialId: 1 };
const CALLER = { credentialId: 1, personId: 1 } as never;

function createPulls(parts: {
  apply?: ApplyManifest;
  check?: () => Promise<void>;
  fetch?: (appId: number) => Promise<Buffer>;
  read?: () => Promise<object>;
}) {
  const { apply = async () => ({ plan: PLAN, tag: "" }), check = async () => undefined } = parts;
  const { fetch = async () => Buffer.alloc(0), read = async () => ({}) } = parts;
  const pulls = new GitPulls({
    connections: { findRow: async () => ROW, readToken: async () => null },
    order: { start: async () => undefined, check, record: async () => undefined },
    repository: {
      find: async (appId: number) => ({ commit: "c", target: "c", downloadPack: () => fetch(appId) }),
      read,
    },
    manifests: { apply },
    publishing: {},
    log: pino({ level: "silent" }),
  } as unknown as GitPullParts);
  const input = { ref: undefined, commit: undefined };
  return (appId: number) => pulls.pull(CALLER, input, { appId, isPlan: false, checkPermission: () => undefined });
}

const statusOf = (work: Promise<unknown>) =>
  work.then(
    () => "applied",
    ({ status }: ActionError) => status,
  );

describe("pulls of git repositories", () => {
  it("apply a commit again if another request has changed the app meanwhile, three times in all", async () => {
    for (const [failures, outcome, attempts] of [
      [0, "applied", 1],
      [2, "applied", 3],
      [3, "MANIFEST_CHANGED", 3],
    ] as const) {
      let calls = 0;
      const apply = async () => {
        calls += 1;
        if (calls <= failures) throw new ActionError("MANIFEST_CHANGED");
        return { plan: PLAN, tag: "" };
      };
      expect([await statusOf(createPulls({ apply })(1)), calls]).to.deep.equal([outcome, attempts]);
    }
  });

  it("say that a retry may succeed if the app was changed in all attempts, but not if they are outdated", async () => {
    const retryAfterOf = (work: Promise<unknown>) =>
      work.then(
        () => "applied",
        ({ details }: ActionError) => details.retryAfter,
      );
    const changed = async () => {
      throw new ActionError("MANIFEST_CHANGED");
    };
    expect(await retryAfterOf(createPulls({ apply: changed })(1))).to.equal(5);
    const apply: ApplyManifest = async (_caller, _document, { onApplied }) => {
      await onApplied?.({} as never, { plan: PLAN } as never);
      return { plan: PLAN, tag: "" };
    };
    expect(await retryAfterOf(createPulls({ apply, check: changed })(1))).to.equal(undefined);
  });

  it("are not repeated if they are outdated, or if the definitions are invalid", async () => {
    for (const status of ["MANIFEST_CHANGED", "REQUEST_INVALID"] as const) {
      let calls = 0;
      const check = async () => {
        throw new ActionError("MANIFEST_CHANGED");
      };
      const apply: ApplyManifest = async (_caller, _document, { onApplied }) => {
        calls += 1;
        if (status === "REQUEST_INVALID") throw new ActionError(status, "a fault");
        await onApplied?.({} as never, { plan: PLAN } as never);
        return { plan: PLAN, tag: "" };
      };
      expect([await statusOf(createPulls({ apply, check })(1)), calls]).to.deep.equal([status, 1]);
    }
  });

  it("wait for slow git servers beside each other: fifteen that never answer do not delay another app", async () => {
    const unanswered = Promise.withResolvers<Buffer>();
    const pull = createPulls({
      fetch: (appId) => (appId < 16 ? unanswered.promise : Promise.resolve(Buffer.alloc(0))),
    });
    const slow = Array.from({ length: 15 }, (_, at) => pull(at + 1));
    expect(await statusOf(pull(16))).to.equal("applied");
    expect(await statusOf(pull(17))).to.equal("applied");
    unanswered.resolve(Buffer.alloc(0));
    await Promise.all(slow);
  });

  it("unpack two commits at once, however many have arrived", async () => {
    let [active, most] = [0, 0];
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    const read = async () => {
      active += 1;
      most = Math.max(most, active);
      await turn();
      active -= 1;
      return {};
    };
    const pull = createPulls({ read });
    await Promise.all(Array.from({ length: 10 }, (_, at) => pull(at + 1)));
    expect(most).to.equal(2);
  });

  it("run one at a time in each app", async () => {
    let [active, most] = [0, 0];
    const fetch = async () => {
      active += 1;
      most = Math.max(most, active);
      await new Promise((resolve) => setImmediate(resolve));
      active -= 1;
      return Buffer.alloc(0);
    };
    const pull = createPulls({ fetch });
    await Promise.all([pull(1), pull(1), pull(1)]);
    expect(most).to.equal(1);
  });
});

describe("webhooks of git servers", () => {
  it("have their own rate window, as large as that of publish, and are refused on a nearly full disk", async () => {
    const admitted: [name: string, limit: number][] = [];
    let accepted = true;
    let level = "enough";
    const window = {
      count: async () => 0,
      admitCall: async (_app: number, name: string, { limit }: { limit: number }) => {
        admitted.push([name, limit]);
        return { accepted, remaining: accepted ? 1 : 0, nextAcceptedAt: new Date(Date.now() + 1_000) };
      },
    };
    const limits = { manage: 60, run: 30, publish: 7, http: 600, communicate: 20, mcp: 120 };
    const accessChecks = createAccessChecks({
      db: {},
      rateWindow: window,
      limits,
      diskSpace: { level: () => level },
    } as never);
    const enter = () => statusOf(accessChecks.countGitWebhook({ caller: null }, 1));
    expect([await enter(), admitted]).to.deep.equal(["applied", [["git webhook", 7]]]);
    for (level of ["low", "spent"]) expect(await enter()).to.equal("OVERLOADED");
    [level, accepted] = ["enough", false];
    expect(await enter()).to.equal("RATE_LIMIT_EXCEEDED");
  });

  const WEBHOOK = { id: 1, appId: 7, ref: "refs/heads/main" };

  /** Creates GitWebhooks that claim one webhook. `events` collects the stored outcomes and the log lines of webhooks that are given up. */
  function createWebhooks(find: () => Promise<never>) {
    const events: unknown[] = [];
    const add = (event: unknown) => async () => void events.push(event);
    const claimed = [[WEBHOOK]];
    const connections = { findRow: async () => ROW, resolveCaller: async () => CALLER, readToken: async () => null };
    const logLine = (line: string) => {
      const { appId, ref, msg } = JSON.parse(line);
      if (String(msg).includes("it is not repeated")) events.push([appId, ref, msg]);
    };
    const log = pino({}, { write: logLine });
    const order = { start: async () => undefined, record: add("stored the outcome") };
    const pulls = new GitPulls({ connections, order, repository: { find }, log } as unknown as GitPullParts);
    const deliveries = {
      claim: async () => claimed.pop() ?? [],
      remove: add("removed"),
      returnAttempts: add("returned the attempt"),
      release: async () => [{ ...WEBHOOK, isGivenUp: true }],
    };
    const accessChecks = { recheck: () => undefined };
    return { events, webhooks: new GitWebhooks({ connections, pulls, deliveries, accessChecks, log } as never) };
  }

  const turns = () => new Promise((resolve) => setTimeout(resolve, 10));

  it("are removed after a failed pull, but not if the error is temporary or the service failed", async () => {
    const temporary = { retryAfter: 5 };
    for (const [error, isRemoved] of [
      [new ActionError("GIT_PULL_FAILED"), true],
      [new ActionError("GIT_PULL_FAILED", "the Git server responded with the HTTP status 503", temporary), false],
      [new ActionError("DEPENDENCY_UNRESOLVED"), true],
      [new ActionError("DEPENDENCY_UNRESOLVED", "the registry responded with status 503", temporary), false],
      [new ActionError("MANIFEST_CHANGED"), true],
      [new ActionError("MANIFEST_CHANGED", "the app was changed", temporary), false],
      [new ActionError("REQUEST_INVALID"), true],
      [new ActionError("PUBLISH_FAILED"), false],
      [new ActionError("OVERLOADED"), false],
    ] as const) {
      const { webhooks, events } = createWebhooks(() => Promise.reject(error));
      await webhooks.startDuePulls();
      await webhooks.drain(new AbortController().signal);
      expect(events, error.message).to.deep.equal(["stored the outcome", ...(isRemoved ? ["removed"] : [])]);
    }
  });

  it("stay if the grace period of a stop ends during the pull, with their attempt, and without an outcome", async () => {
    const unfinished = Promise.withResolvers<never>();
    const { webhooks, events } = createWebhooks(() => unfinished.promise);
    await webhooks.startDuePulls();
    const timeLimit = new AbortController();
    const drained = webhooks.drain(timeLimit.signal);
    timeLimit.abort();
    await drained;
    unfinished.reject(new ActionError("GIT_PULL_FAILED"));
    await turns();
    expect(events).to.deep.equal(["returned the attempt"]);
  });

  it("are logged with app and ref when they are given up", async () => {
    const { webhooks, events } = createWebhooks(() => Promise.reject(new Error("unused")));
    await webhooks.recover(true);
    expect(events).to.deep.equal([
      [
        ...[7, "refs/heads/main"],
        "every attempt of the pull after a Git webhook failed or was interrupted; it is not repeated",
      ],
    ]);
  });
});
