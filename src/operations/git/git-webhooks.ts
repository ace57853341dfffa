/**
 * Handles webhooks of Git servers: verifies the signature, stores the webhook, and pulls the branch or tag after the
 * response.
 */
import type { Logger } from "pino";
import { createTokenBucket } from "../../engine/token-bucket.js";
import { ActionError, rateLimitError } from "../../errors.js";
import { RATE_WINDOW_MS } from "../../limits.js";
import { addressBlock } from "../../rules/address-block.js";
import { findPulledRef } from "../../rules/git-input.js";
import { isFromGitServer, readPushedRef } from "../../rules/git-webhook.js";
import type { SignedRequest } from "../../rules/http/signatures.js";
import type { AccessGate } from "../access/gate.js";
import { createRunningDeliveries } from "../running-deliveries.js";
import type { GitConnections } from "./git-connections.js";
import { type ClaimedWebhook, type GitDeliveries, WAITING_MAX } from "./git-deliveries.js";
import { type GitPulls, PULLS_AT_ONCE } from "./git-pulls.js";

/** Maximum number of webhook requests from one network address to one app, per RATE_WINDOW_MS. */
const REQUESTS_PER_ADDRESS_MAX = 120;

export interface GitWebhookRequest extends SignedRequest {
  address: string | undefined;
}

export type GitWebhookAnswer = { status: "ACCEPTED" | "IGNORED" };

export type GitWebhooks = ReturnType<typeof createGitWebhooks>;

export function createGitWebhooks(options: {
  connections: GitConnections;
  pulls: GitPulls;
  deliveries: GitDeliveries;
  gate: Pick<AccessGate, "enterGitWebhook" | "recheck">;
  log: Logger;
}) {
  const { connections, pulls, deliveries, gate, log } = options;
  const addresses = createTokenBucket({ limit: REQUESTS_PER_ADDRESS_MAX, windowMs: RATE_WINDOW_MS });
  const runningPulls = createRunningDeliveries(PULLS_AT_ONCE);
  let onAccepted: () => void = () => undefined;

  /**
   * Runs the pull of a webhook. A failure that repeating cannot solve is stored as the connection's last pull, because
   * no caller waits for it. Rejects if the pull should be repeated: the service failed, is busy, or is stopping.
   */
  async function tryPull({ appId, ref }: ClaimedWebhook): Promise<void> {
    try {
      await pulls.pullInTurn({
        ...{ appId, isPlan: false, skipsPublished: true, reviewedCommit: null },
        refOf: (row) => row && findPulledRef(ref, row),
        authorOf: (row) => connections.callerOf(appId, row),
        checkPermission: (caller, operation) => gate.recheck(caller, operation, appId),
        stopping: runningPulls.signal,
      });
    } catch (error) {
      const isOutcome = error instanceof ActionError && error.status !== "OVERLOADED" && !runningPulls.signal.aborted;
      if (!isOutcome) throw error;
      const { status, message } = error;
      log.warn({ appId, ref, status, reason: message }, "the pull after a Git webhook failed");
    }
  }

  function startPull(webhook: ClaimedWebhook): void {
    const pulling = tryPull(webhook).then(() => deliveries.remove(webhook));
    // The row is not deleted, so that `recover` releases it and the pull is repeated.
    const logFailure = (err: unknown) =>
      log.warn(
        { err, appId: webhook.appId, ref: webhook.ref },
        "the pull after a Git webhook failed because of the service; it is repeated",
      );
    runningPulls.trackDelivery(webhook, pulling.catch(logFailure));
  }

  return {
    /** Counts a webhook request of a network address. Call it before reading the body. @throws RATE_LIMIT_EXCEEDED */
    countAddress(address: string | undefined, appId: number): void {
      const wait = addresses.takeTokens(`${appId} ${addressBlock(address ?? "")}`);
      if (wait > 0) throw rateLimitError("too many webhook requests from this network address", wait);
    },

    /**
     * Sets the function that is called when a webhook was accepted or a pull has ended. It must cause a call of
     * `deliverDue`.
     */
    onPullsWaiting(listener: () => void): void {
      onAccepted = listener;
      runningPulls.whenFree(listener);
    },

    /**
     * Starts the pulls of accepted webhooks while slots are free. Returns null, because the next call is not at a fixed
     * time: the next webhook causes it.
     */
    async deliverDue(): Promise<null> {
      for (let free = runningPulls.free(); free > 0; free = runningPulls.free()) {
        const claimed = await deliveries.claim(free);
        for (const webhook of claimed) startPull(webhook);
        if (claimed.length === 0) break;
      }
      return null;
    },

    /**
     * Releases webhooks whose pull was interrupted, so that it is repeated. With `mayDeclareDead`, this includes
     * webhooks of processes with an expired lease.
     */
    async recover(mayDeclareDead: boolean): Promise<void> {
      const lostDeliveries = await deliveries.release(runningPulls.ids(), mayDeclareDead);
      if (lostDeliveries.length > 0)
        log.warn({ count: lostDeliveries.length }, "pulls after Git webhooks were interrupted; they are repeated");
      for (const { appId, ref } of lostDeliveries.filter(({ isGivenUp }) => isGivenUp))
        log.error({ appId, ref }, "the pull after a Git webhook was interrupted in every attempt; it is not repeated");
    },

    /**
     * Starts no more pulls, and waits until the running pulls have ended or the signal aborts. Another process, or this
     * one after its restart, repeats interrupted pulls; their attempts do not count.
     */
    async drain(deadline: AbortSignal): Promise<void> {
      const aborted = new Promise((resolve) => deadline.addEventListener("abort", resolve, { once: true }));
      const drained = runningPulls.drain(deadline);
      if (!deadline.aborted) await Promise.race([drained, aborted]);
      if (runningPulls.ids().length === 0) return;
      const logFailure = (err: unknown) =>
        log.warn({ err }, "the attempts of interrupted Git pulls could not be subtracted, so they count");
      await deliveries.returnAttempts(runningPulls.ids()).catch(logFailure);
    },

    /**
     * Verifies and stores a webhook. @throws SIGNATURE_INVALID, also if the app has no connection; REQUEST_INVALID,
     * RATE_LIMIT_EXCEEDED, OVERLOADED
     */
    async receive(appId: number, request: GitWebhookRequest): Promise<GitWebhookAnswer> {
      const row = appId === 0 ? null : await connections.findRow(appId);
      const isSigned = row && isFromGitServer(row.provider, request, await connections.secretOf(appId, row));
      if (!isSigned) throw new ActionError("SIGNATURE_INVALID");
      const ref = readPushedRef(request.body, request.header("content-type"));
      const pushed = ref === null ? null : findPulledRef(ref, row);
      if (!pushed) return { status: "IGNORED" };
      const { address } = request;
      await gate.enterGitWebhook({ caller: null, ...(address !== undefined && { address }) }, appId);
      if (!(await deliveries.add(appId, pushed.ref)))
        throw rateLimitError(
          `${WAITING_MAX} pulls of this app already wait, which is the maximum`,
          RATE_WINDOW_MS / 1_000,
        );
      onAccepted();
      return { status: "ACCEPTED" };
    },
  };
}
