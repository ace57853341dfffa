/** Webhooks of git servers: verifies the signature before any other work, stores the webhook, and pulls the branch or tag afterwards. */
import type { Logger } from "pino";
import { createTokenBucket } from "../../engine/token-bucket.js";
import { ActionError, rateLimitError } from "../../errors.js";
import { RATE_WINDOW_MS } from "../../limits.js";
import { addressBlock } from "../../rules/address-block.js";
import { pulledRef } from "../../rules/git-input.js";
import { isFromGitServer, pushedRef } from "../../rules/git-webhook.js";
import type { SignedRequest } from "../../rules/http/signatures.js";
import type { AccessGate } from "../access/gate.js";
import { createRunningDeliveries } from "../running-deliveries.js";
import type { GitConnections } from "./git-connections.js";
import { type ClaimedWebhook, type GitDeliveries, WAITING_MAX } from "./git-deliveries.js";
import { type GitPulls, PULLS_AT_ONCE } from "./git-pulls.js";

/** Maximum number of requests of one network address to the webhook of one app, per RATE_WINDOW_MS. */
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
   * Runs the pull of a webhook. No caller waits, so a failure is stored with the connection. Rejects if the service
   * failed or is busy, and for every failure after the grace period of a stop: another attempt is then made.
   */
  async function tryPull({ appId, ref }: ClaimedWebhook): Promise<void> {
    try {
      await pulls.pullInTurn({
        ...{ appId, isPlan: false, skipsPublished: true, reviewedCommit: null },
        refOf: (row) => row && pulledRef(ref, row),
        authorOf: (row) => connections.callerOf(appId, row),
        may: (caller, operation) => gate.recheck(caller, operation, appId),
        stopping: runningPulls.signal,
      });
    } catch (error) {
      const isOutcome = error instanceof ActionError && error.status !== "OVERLOADED" && !runningPulls.signal.aborted;
      if (!isOutcome) throw error;
      const { status, message } = error;
      log.warn({ appId, ref, status, reason: message }, "a pull after a webhook failed");
    }
  }

  function startPull(webhook: ClaimedWebhook): void {
    const pulling = tryPull(webhook).then(() => deliveries.remove(webhook));
    // The row stays, and is released by `recover`.
    const logFailure = (err: unknown) =>
      log.warn({ err, appId: webhook.appId, ref: webhook.ref }, "a pull after a webhook failed in the service");
    runningPulls.trackDelivery(webhook, pulling.catch(logFailure));
  }

  return {
    /** Counts a request by its network address, before its body is read. @throws RATE_LIMIT_EXCEEDED */
    countAddress(address: string | undefined, appId: number): void {
      const wait = addresses.takeTokens(`${appId} ${addressBlock(address ?? "")}`);
      if (wait > 0) throw rateLimitError("too many requests from this address", wait);
    },

    /** Sets the function that is called when a webhook was accepted or a pull has ended; it then calls `deliverDue`. */
    whenWaiting(listener: () => void): void {
      onAccepted = listener;
      runningPulls.whenFree(listener);
    },

    /**
     * Starts the pulls of accepted webhooks while slots are free. Returns null, because no time is planned: the next
     * webhook triggers the next call.
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
     * Releases webhooks that this process has claimed without receiving them. With `mayDeclareDead`, also releases
     * those of dead processes.
     */
    async recover(mayDeclareDead: boolean): Promise<void> {
      const lostDeliveries = await deliveries.release(runningPulls.ids(), mayDeclareDead);
      if (lostDeliveries.length > 0)
        log.warn({ count: lostDeliveries.length }, "released webhooks of git servers whose pull was interrupted");
      for (const { appId, ref } of lostDeliveries.filter(({ isGivenUp }) => isGivenUp))
        log.error({ appId, ref }, "gave up a webhook of a git server after three attempts");
    },

    /**
     * Starts no more pulls, and waits until the current ones have ended or the signal aborts. Interrupted attempts do
     * not count; another process or the next start repeats them.
     */
    async drain(impatience: AbortSignal): Promise<void> {
      const aborted = new Promise((resolve) => impatience.addEventListener("abort", resolve, { once: true }));
      const drained = runningPulls.drain(impatience);
      if (!impatience.aborted) await Promise.race([drained, aborted]);
      if (runningPulls.ids().length === 0) return;
      const logFailure = (err: unknown) => log.warn({ err }, "the attempts of interrupted pulls count");
      await deliveries.returnAttempts(runningPulls.ids()).catch(logFailure);
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
      if (!(await deliveries.add(appId, pushed.ref)))
        throw rateLimitError(`${WAITING_MAX} pulls of this app wait already`, RATE_WINDOW_MS / 1_000);
      onAccepted();
      return { status: "ACCEPTED" };
    },
  };
}
