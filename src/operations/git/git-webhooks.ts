/** Webhooks of git servers: verifies the signature before any other work, then pulls the branch or tag in the background. */
import type { Logger } from "pino";
import { runInBackground } from "../../background.js";
import { createTokenBucket } from "../../engine/token-bucket.js";
import { ActionError, tooOften } from "../../errors.js";
import { RATE_WINDOW_MS } from "../../limits.js";
import { addressBlock } from "../../rules/address-block.js";
import { pulledRef } from "../../rules/git-input.js";
import { isFromGitServer, pushedRef } from "../../rules/git-webhook.js";
import type { SignedRequest } from "../../rules/http/signatures.js";
import type { AccessGate } from "../access/gate.js";
import type { GitConnections } from "./git-connections.js";
import type { GitPulls } from "./git-pulls.js";

/** Maximum number of requests of one network address to the webhook of one app, per RATE_WINDOW_MS. */
const REQUESTS_PER_ADDRESS_MAX = 120;
/** Maximum number of pulls of one app that wait. */
const WAITING_MAX = 20;

export interface GitWebhookRequest extends SignedRequest {
  address: string | undefined;
}

export type GitWebhookAnswer = { status: "ACCEPTED" | "IGNORED" };

export type GitWebhooks = ReturnType<typeof createGitWebhooks>;

export function createGitWebhooks(options: {
  connections: GitConnections;
  pulls: GitPulls;
  gate: Pick<AccessGate, "enterGitWebhook" | "recheck">;
  log: Logger;
}) {
  const { connections, pulls, gate, log } = options;
  const addresses = createTokenBucket({ limit: REQUESTS_PER_ADDRESS_MAX, windowMs: RATE_WINDOW_MS });
  /** Refs that wait for their pull, by app. */
  const waiting = new Map<number, Set<string>>();
  /** Work of the apps in `waiting`. */
  const working = new Set<Promise<void>>();

  /** Pulls a ref. The pull stores its failure with the connection, and no caller awaits it. */
  async function tryPull(appId: number, ref: string): Promise<void> {
    try {
      await pulls.pullInTurn({
        ...{ appId, isPlan: false, skipsPublished: true, reviewedCommit: null },
        refOf: (row) => row && pulledRef(ref, row),
        authorOf: (row) => connections.callerOf(appId, row),
        may: (caller, operation) => gate.recheck(caller, operation, appId),
      });
    } catch (error) {
      const { status = null, message } = error as { status?: string; message: string };
      log.warn({ appId, ref, status, reason: message }, "a pull after a webhook failed");
    }
  }

  async function work(appId: number, refs: Set<string>): Promise<void> {
    try {
      for (let [ref] = refs; ref !== undefined; [ref] = refs) {
        refs.delete(ref);
        await tryPull(appId, ref);
      }
    } finally {
      waiting.delete(appId);
    }
  }

  /** Starts the pull, or queues it. A ref is queued once. @throws ActionError RATE_LIMIT_EXCEEDED */
  function schedule(appId: number, ref: string): void {
    const known = waiting.get(appId);
    if (!known) {
      const refs = new Set([ref]);
      waiting.set(appId, refs);
      const pulling = work(appId, refs);
      working.add(pulling);
      runInBackground(pulling.finally(() => working.delete(pulling)));
      return;
    }
    if (known.size >= WAITING_MAX && !known.has(ref))
      throw tooOften(`${WAITING_MAX} pulls of this app wait already`, RATE_WINDOW_MS / 1_000);
    known.add(ref);
  }

  return {
    /** Counts a request by its network address, before its body is read. @throws RATE_LIMIT_EXCEEDED */
    countAddress(address: string | undefined, appId: number): void {
      const wait = addresses.take(`${appId} ${addressBlock(address ?? "")}`);
      if (wait > 0) throw tooOften("too many requests from this address", wait);
    },

    /** Waits for the pulls of accepted webhooks, until the signal aborts. */
    async drain(impatience: AbortSignal): Promise<void> {
      const aborted = new Promise((resolve) => impatience.addEventListener("abort", resolve, { once: true }));
      if (!impatience.aborted) await Promise.race([Promise.allSettled(working), aborted]);
    },

    /** @throws SIGNATURE_INVALID also for an app without a connection; REQUEST_INVALID, RATE_LIMIT_EXCEEDED, OVERLOADED */
    async receive(appId: number, request: GitWebhookRequest): Promise<GitWebhookAnswer> {
      const row = appId === 0 ? null : await connections.row(appId);
      const isSigned = row && isFromGitServer(row.provider, request, await connections.secretOf(appId, row));
      if (!isSigned) throw new ActionError("SIGNATURE_INVALID");
      const ref = pushedRef(request.body, request.header("content-type"));
      const pushed = ref === null ? null : pulledRef(ref, row);
      if (!pushed) return { status: "IGNORED" };
      const { address } = request;
      await gate.enterGitWebhook({ caller: null, ...(address !== undefined && { address }) }, appId);
      schedule(appId, pushed.ref);
      return { status: "ACCEPTED" };
    },
  };
}
