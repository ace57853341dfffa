/**
 * A realm or a dedicated worker for each run, in a page whose document is the host's alone. Costs less than a document. Its global scope
 * has no names but those that are listed (worker-globals.ts), and the page's policy lets nothing be loaded. Without a network its origin
 * is nobody's; with one it is the app's, and what it asks for goes the way of all requests.
 */
import type { CDPSession, Protocol } from "puppeteer";
import { createRunRequests } from "../network/run-requests.js";
import { createServiceCalls, type Reply } from "../network/service-calls.js";
import type { PageRun } from "../run.js";
import {
  answerDocument,
  CONSOLE_BINDING,
  callForText,
  callHarness,
  installHarness,
  navigate,
} from "./fresh-document.js";
import { LANGUAGE_HARNESS, NETWORK_HARNESS, PAUSE_MS, READY_WITHIN_MS, WORKER_HARNESS } from "./harness.js";
import { createKeptTexts } from "./kept-texts.js";
import type { Realm, RealmOptions } from "./realm.js";
import { createThreadMemory, type ThreadMemory } from "./thread-memory.js";

const policy = (more: string) => ({
  name: "Content-Security-Policy",
  value: `default-src 'none'; script-src 'unsafe-eval'; ${more}`,
});
const SILENT_POLICY = policy("worker-src data:");
/** No sockets: they would pass the guard by. */
const NETWORK_POLICY = policy("worker-src blob:; connect-src http: https: data: blob:");

/** Stands in the page alone, which no author's code is in. */
const SERVICE_BINDING = "__svc_service";

/** Before an answer: what the next run needs takes longer than it may wait for; how much the thread holds is to be looked at. */
const LONG_RENEWAL = "t";
const LOOK = "l";

/**
 * What a thread of realms may hold when it serves another run. V8 collects the whole of its garbage at 32 MB of objects, or twice that of
 * buffers, and where a realm's code runs by then, Chromium ends the page (trials.ts).
 */
const THREAD_MAX_BYTES = 16 * 1024 * 1024;

/** A worker that is busy for so long is not waited for. */
const CATCH_UP_MS = 200;

/** A scope that has ended holds 40 to 100 KB of memory until the page's own garbage is collected, which is late. */
const COLLECT_EVERY_RUNS = 50;

/** The page around realms or workers. */
function createWorkerPage({ session, origin }: RealmOptions, harness: string) {
  let harnessId = "";
  let runs = 0;
  const texts = createKeptTexts();

  /** Sends the page to its document and puts the harness there. */
  async function open(): Promise<void> {
    const { loaded } = await navigate(session, `${origin}/`);
    [harnessId] = await Promise.all([installHarness(session, harness), loaded]);
    await callHarness(session, harnessId, "listen", [CONSOLE_BINDING]);
  }

  return {
    open,
    /** Has the first run's realm or worker ready, where each run has the next one's prepared. */
    begin: () => callHarness(session, harnessId, "begin", []),
    /** Resolves when what the last run has prepared is ready. */
    ready: () => callHarness(session, harnessId, "ready", []),
    /** Ends the thread of the runs so far, and has the next one's realm ready on another. */
    replaceThread: () => callHarness(session, harnessId, "replaceThread", []),
    /** Ends the last run's worker, and has a fresh one ready. */
    async renew(): Promise<boolean> {
      const renewed = (await callHarness(session, harnessId, "renew", [])) === true;
      await this.collect();
      return renewed;
    },
    /** From time to time, what runs have left in the page's own process. */
    async collect(): Promise<void> {
      if (runs % COLLECT_EVERY_RUNS === COLLECT_EVERY_RUNS - 1) await session.send("HeapProfiler.collectGarbage");
    },
    /** `base`: that of the service that the run may ask by `listenService`. */
    run(request: PageRun, base = ""): Promise<unknown> {
      runs += 1;
      return callForText(session, harnessId, "run", [...texts.valuesOf(request), base]);
    },
    /** Has what workers ask of the service come to `take`. */
    async listenService(take: (payload: string) => void): Promise<void> {
      session.on("Runtime.bindingCalled", ({ name, payload }) => {
        if (name === SERVICE_BINDING) take(payload);
      });
      await session.send("Runtime.addBinding", { name: SERVICE_BINDING });
      await callHarness(session, harnessId, "listenService", [SERVICE_BINDING]);
    },
    answer: (...values: Parameters<Reply>) => callHarness(session, harnessId, "answer", values),
  };
}

/**
 * Where nothing can be asked for once the page has its document. A run's end begins the next one's realm or worker, unasked: a message
 * there and back costs a tenth of a run. `thread`: that of its realms, where runs share one.
 */
function createSilentRealm(options: RealmOptions, harness: string, thread: ThreadMemory | null): Realm {
  const { session, origin, lose } = options;
  const page = createWorkerPage(options, harness);
  let endedAt = 0;
  let mark = "";
  session.on("Fetch.requestPaused", ({ requestId }) => answerDocument(session, requestId, [SILENT_POLICY]));
  session.on("Runtime.bindingCalled", ({ name, payload }) => {
    if (name === CONSOLE_BINDING && payload === "") lose("unready");
  });
  return {
    async settle() {
      await session.send("Fetch.enable", { patterns: [{ urlPattern: `${origin}/` }] });
      await thread?.watch();
      await page.open();
      // On, it costs every worker's start a part, whatever its pattern.
      await session.send("Fetch.disable");
      await page.begin();
    },
    async renew() {
      if (mark === LONG_RENEWAL) await page.ready();
      if (mark === LOOK && thread !== null && (await thread.heldBytes()) > THREAD_MAX_BYTES) await page.replaceThread();
      await page.collect();
      return true;
    },
    async evaluate(request) {
      const answer = await page.run(request);
      mark = typeof answer === "string" && [LONG_RENEWAL, LOOK].includes(answer[0]!) ? answer[0]! : "";
      return mark === "" ? answer : (answer as string).slice(mark.length);
    },
    unreadyMs: () => Math.max(0, endedAt + PAUSE_MS + READY_WITHIN_MS - performance.now()),
    end() {
      endedAt = performance.now();
    },
    explain: async (outcome) => outcome,
    stop: () => {},
  };
}

export const createLanguageRealm = (options: RealmOptions): Realm =>
  createSilentRealm(options, LANGUAGE_HARNESS, createThreadMemory(options.session));

export const createWorkerRealm = (options: RealmOptions): Realm => createSilentRealm(options, WORKER_HARNESS, null);

export function createNetworkRealm(options: RealmOptions): Realm {
  const { session, origin, lane, lose } = options;
  const page = createWorkerPage(options, NETWORK_HARNESS);
  // Nothing in such a worker opens a socket, of which the guard would have to hear first.
  const requests = createRunRequests({ session, origin, lane, caughtUp: async () => {} });
  const calls = createServiceCalls(requests.admit, page.answer);
  /** How often the last run called `fetch`; null: it has not said. */
  let asked: number | null = 0;
  let watched: Promise<unknown> = Promise.resolve();
  let current: CDPSession | null = null;
  let onAttached: () => void = () => {};
  let isOpen = false;

  /** Resolves when all that the worker has told of its requests has arrived. */
  async function caughtUp(): Promise<void> {
    await current?.send("Runtime.getIsolateId", undefined, { timeout: CATCH_UP_MS });
  }

  session.on("Target.attachedToTarget", ({ sessionId }: Protocol.Target.AttachedToTargetEvent) => {
    current = session.connection()?.session(sessionId) ?? null;
    if (current) watched = requests.watch(current);
    // Nobody may be left to ask what became of it, when the page or its browser goes just now.
    watched.catch(() => {});
    onAttached();
  });

  /** Replaces the worker by another, which is watched from its first line on. @returns false when the page must be thrown away instead */
  async function replaceWorker(): Promise<boolean> {
    const attached = new Promise<void>((resolve) => {
      onAttached = resolve;
    });
    const inHand = await page.renew();
    await attached;
    await watched;
    return inHand;
  }

  session.on("Fetch.requestPaused", (event) => {
    if (isOpen) requests.answer(session, event);
    else answerDocument(session, event.requestId, [NETWORK_POLICY]);
  });

  return {
    async settle() {
      await session.send("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: false, flatten: true });
      await session.send("Fetch.enable", { patterns: [{ urlPattern: `${origin}/` }] });
      // Nothing is said of the page's own requests: it makes none but those for its workers' first line.
      await page.open();
      isOpen = true;
      // On, it costs each worker's start and each request a part, whatever its pattern.
      await session.send("Fetch.disable");
      await page.listenService((payload) => void calls.take(payload));
    },

    async renew() {
      if (asked === null) return false;
      if (!requests.over(asked)) {
        await caughtUp();
        await requests.settled();
      }
      const [inHand] = await Promise.all([replaceWorker(), requests.clear()]);
      return inHand && !requests.late();
    },

    async evaluate(request) {
      asked = null;
      // What went before the guard may still be the way of the worker that waits.
      if ((await requests.begin(request)) && !(await replaceWorker())) lose("unready");
      calls.begin(request.service);
      const said = await page.run(request, request.service?.base);
      if (typeof said !== "string") return said;
      const end = said.indexOf(" ");
      asked = Number(said.slice(0, end));
      return said.slice(end + 1);
    },

    unreadyMs: () => 0,
    end: calls.end,

    async explain(outcome) {
      // One thread answers, another tells of the requests.
      if (requests.pending(outcome)) await caughtUp().catch(() => {});
      return requests.explain(outcome);
    },
    stop: calls.end,
  };
}
