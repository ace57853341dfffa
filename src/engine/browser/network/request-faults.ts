/**
 * Remembers why requests of a run failed, since the page is told only that one did. Says hosts and reasons, never a path or a
 * query: they may hold what must not be repeated.
 */
import { setTimeout as setTimeoutPromise } from "node:timers/promises";
import type { CDPSession, Protocol } from "puppeteer";
import type { PageOutcome } from "../run.js";

export interface RequestFaults {
  /** Listens to a session whose Network domain is on. */
  watch(session: CDPSession): void;
  /** Forgets the last run's. `onFault` gets each reason once, a bounded number of them. */
  begin(onFault: (fault: string) => void): void;
  /** The way out refused `host:port`. */
  refused(host: string, reason: string): void;
  /** A request that was sent past the browser failed, or was blocked. */
  failed(url: string, reason: string): void;
  /** The way out has a connection to `host:port`: what fails from here on has another reason. */
  reached(host: string): void;
  /** Whether as many calls of `fetch` as that have been told of, and every request has ended. */
  over(asked: number): boolean;
  /** Resolves when every request that was told of has ended; rejects when some have not within `timeoutMs`. */
  settled(timeoutMs: number): Promise<void>;
  /** Whether a request has not ended, or the outcome is a failure of one that is not explained. */
  pending(outcome: PageOutcome): boolean;
  /** The outcome with what is known, where the page could only say "Failed to fetch". */
  explain(outcome: PageOutcome): PageOutcome;
}

/** What Chromium's fetch says whatever happened. */
const UNEXPLAINED = "Failed to fetch";
export const BLOCKED = "the request was blocked, its URL holds what must not leave";
const FAULTS_MAX = 20;
const SAID_MAX = 3;
const PENDING_MAX = 1_000;

function reasonOf(
  { corsErrorStatus, errorText, blockedReason }: Protocol.Network.LoadingFailedEvent,
  origin: string,
): string {
  if (blockedReason === "inspector") return BLOCKED;
  if (corsErrorStatus) {
    return `blocked by CORS, this host does not allow requests from ${origin} (${corsErrorStatus.corsError})`;
  }
  if (blockedReason === "mixed-content") return "blocked, a page of https may not request what is not https";
  const code = errorText.replace(/^net::/, "");
  if (/^ERR_CERT_/.test(code)) return `the certificate of the host is not trusted (${code})`;
  if (/^ERR_(SSL|TLS|BAD_SSL|ECH)_/.test(code)) return `TLS with the host failed (${code})`;
  return errorText || blockedReason || "no reason is known";
}

export function watchRequestFaults(origin: string): RequestFaults {
  const pending = new Map<string, string>();
  /** Calls of `fetch`, without what the browser sends ahead of them or after an answer. */
  let told = 0;
  const refusals = new Map<string, string>();
  let faults = new Set<string>();
  let onSettled: (() => void) | null = null;
  /** More than are counted. */
  let crowded = false;
  let onFault: (fault: string) => void = () => {};

  function add(fault: string): void {
    if (faults.has(fault) || faults.size >= FAULTS_MAX) return;
    faults.add(fault);
    onFault(fault);
  }

  /** What an address was blocked for may be its host. */
  const addOf = (url: URL, reason: string) => add(`${reason === BLOCKED ? "an address" : url.origin}: ${reason}`);

  function end(requestId: string): void {
    pending.delete(requestId);
    if (pending.size === 0) onSettled?.();
  }

  function onFailed(event: Protocol.Network.LoadingFailedEvent): void {
    const url = URL.parse(pending.get(event.requestId) ?? "");
    end(event.requestId);
    if (url === null || url.origin === "null" || event.canceled) return;
    const port = url.port || (url.protocol === "https:" ? "443" : "80");
    const refusal = refusals.get(`${url.hostname.replace(/^\[(.*)\]$/, "$1")}:${port}`);
    addOf(url, refusal ?? reasonOf(event, origin));
  }

  return {
    watch(session) {
      session.on("Network.requestWillBeSent", ({ requestId, request, type, redirectResponse }) => {
        if (type === "Fetch" && redirectResponse === undefined) told += 1;
        if (pending.size < PENDING_MAX) pending.set(requestId, request.url);
        else crowded = true;
      });
      session.on("Network.loadingFinished", ({ requestId }) => end(requestId));
      session.on("Network.loadingFailed", onFailed);
    },

    begin(next) {
      onFault = next;
      pending.clear();
      told = 0;
      crowded = false;
      refusals.clear();
      faults = new Set();
    },

    over: (asked) => told >= asked && pending.size === 0 && !crowded,

    async settled(timeoutMs) {
      if (crowded) throw new Error("the run had too many requests under way to know when they end");
      if (pending.size === 0) return;
      const timer = new AbortController();
      const late = setTimeoutPromise(timeoutMs, undefined, { signal: timer.signal }).then(() => {
        throw new Error("requests of the run are still under way");
      });
      const done = new Promise<void>((resolve) => {
        onSettled = resolve;
      });
      await Promise.race([done, late]).finally(() => {
        onSettled = null;
        timer.abort();
      });
    },

    refused(host, reason) {
      if (refusals.size < FAULTS_MAX) refusals.set(host, reason);
    },

    failed: (url, reason) => addOf(new URL(url), reason),

    reached(host) {
      refusals.delete(host);
    },

    pending(outcome) {
      if (outcome.ok) return pending.size > 0;
      return outcome.cause === "script" && (pending.size > 0 || outcome.error.message === UNEXPLAINED);
    },

    explain(outcome) {
      if (outcome.ok || outcome.error.message !== UNEXPLAINED || faults.size === 0) return outcome;
      const message = `${UNEXPLAINED} ${[...faults].slice(0, SAID_MAX).join("; ")}`;
      const stack = outcome.error.stack.replace(UNEXPLAINED, () => message);
      return { ...outcome, error: { ...outcome.error, message, stack } };
    },
  };
}
