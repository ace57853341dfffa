/** Handles webhooks of Git servers: verifies the signature, stores the webhook, sends the response, and then pulls the branch or tag. */
import type { Logger } from "pino";
import { createTokenBucket } from "../../engine/token-bucket.js";
import { ActionError, createRateLimitError, getHttpStatus } from "../../errors.js";
import { RATE_WINDOW_MS } from "../../limits.js";
import { getAddressBlock } from "../../rules/address-block.js";
import { findPulledRefByName } from "../../rules/git-input.js";
import { isAuthenticGitWebhook, parsePushedRef } from "../../rules/git-webhook.js";
import type { SignedRequest } from "../../rules/http/signatures.js";
import type { AccessChecks } from "../access/access-checks.js";
import { DeliveryTracker } from "../delivery-tracker.js";
import type { GitConnections } from "./git-connections.js";
import { type ClaimedGitWebhook, type GitWebhookQueue, WAITING_GIT_WEBHOOKS_PER_APP_MAX } from "./git-deliveries.js";
import { CONCURRENT_GIT_PULLS_MAX, type GitPulls } from "./git-pulls.js";

/** Maximum number of webhook requests to one app from one network address, per RATE_WINDOW_MS. */
const REQUESTS_PER_ADDRESS_MAX = 120;

/** True if a retry of the pull may fix the error, because the service failed, or the error is temporary. */
const isRetryable = (error: ActionError): boolean =>
  error.details.retryAfter !== undefined || getHttpStatus(error) >= 500;

export interface GitWebhookRequest extends SignedRequest {
  networkAddress: string | undefined;
}

export type GitWebhookResponse = { status: "ACCEPTED" | "IGNORED" };

interface GitWebhooksOptions {
  connections: GitConnections;
  pulls: GitPulls;
  deliveries: GitWebhookQueue;
  accessChecks: Pick<AccessChecks, "countGitWebhook" | "recheck">;
  log: Logger;
}

export class GitWebhooks {
  private readonly addresses = createTokenBucket({ limit: REQUESTS_PER_ADDRESS_MAX, windowMs: RATE_WINDOW_MS });
  private readonly runningPulls = new DeliveryTracker(CONCURRENT_GIT_PULLS_MAX);
  private onAccepted: () => void = () => undefined;

  constructor(private readonly options: GitWebhooksOptions) {}

  /**
   * Runs the pull of a webhook. Rejects if the pull must be repeated: after a temporary error or a failure of the service, or because the
   * process stops.
   */
  private async tryPull({ id, appId, ref }: ClaimedGitWebhook): Promise<void> {
    const { connections, pulls, accessChecks, log } = this.options;
    try {
      await pulls.pullInSlot({
        ...{ appId, isPlan: false, webhookId: id, reviewedCommit: null },
        resolveRef: (row) => row && findPulledRefByName(ref, row),
        resolveAuthor: (row) => connections.resolveCaller(appId, row),
        checkPermission: (caller, operation) => accessChecks.recheck(caller, operation, appId),
        stopping: this.runningPulls.signal,
      });
    } catch (error) {
      const isFinalFailure = error instanceof ActionError && !isRetryable(error) && !this.runningPulls.signal.aborted;
      if (!isFinalFailure) throw error;
      const { status, message } = error;
      log.warn({ appId, ref, status, reason: message }, "the pull after a Git webhook failed");
    }
  }

  private startPull(webhook: ClaimedGitWebhook): void {
    const { deliveries, log } = this.options;
    const pullPromise = this.tryPull(webhook).then(() => deliveries.remove(webhook));
    // After an error, the webhook stays in the queue. `recover` releases the webhook, and a process then repeats the pull.
    const logFailure = (err: unknown) =>
      log.warn(
        { err, appId: webhook.appId, ref: webhook.ref },
        "the pull after a Git webhook failed; it is repeated unless this was its last attempt",
      );
    this.runningPulls.trackDelivery(webhook, pullPromise.catch(logFailure));
  }

  /**
   * Counts a webhook request from a network address. Call this function before reading the request's body.
   * @throws ActionError RATE_LIMIT_EXCEEDED
   */
  countRequest(address: string | undefined, appId: number): void {
    const wait = this.addresses.takeTokens(`${appId} ${getAddressBlock(address ?? "")}`);
    if (wait > 0) throw createRateLimitError("too many webhook requests from this network address", wait);
  }

  /**
   * Sets the function to call when a webhook was accepted or a pull has ended. The function must cause a call of
   * `startDuePulls`, which starts the next pulls.
   */
  onPullsWaiting(listener: () => void): void {
    this.onAccepted = listener;
    this.runningPulls.onDeliveryEnd(listener);
  }

  /**
   * Starts pulls while slots are free. Returns null, because no next time is planned: the next webhook or the end of a pull causes a call.
   */
  async startDuePulls(): Promise<null> {
    for (let free = this.runningPulls.countFree(); free > 0; free = this.runningPulls.countFree()) {
      const claimedWebhooks = await this.options.deliveries.claim(free);
      for (const webhook of claimedWebhooks) this.startPull(webhook);
      if (claimedWebhooks.length === 0) break;
    }
    return null;
  }

  /**
   * Puts webhooks of this process back into the queue if it does not run their pull, for example after a temporary error. Then a process
   * repeats the pull. With `mayDeclareDead`, also puts back the webhooks of processes whose lease has expired. Logs pulls that it gives up.
   */
  async recover(mayDeclareDead: boolean): Promise<void> {
    const { deliveries, log } = this.options;
    const lostDeliveries = await deliveries.release(this.runningPulls.listIds(), mayDeclareDead);
    if (lostDeliveries.length > 0)
      log.warn({ count: lostDeliveries.length }, "pulls after Git webhooks were interrupted or failed temporarily");
    for (const { appId, ref } of lostDeliveries.filter(({ isGivenUp }) => isGivenUp))
      log.error(
        { appId, ref },
        "every attempt of the pull after a Git webhook failed or was interrupted; it is not repeated",
      );
  }

  /**
   * Starts no further pulls. Waits until the running pulls have ended or the signal aborts. Pulls that have not ended are repeated by
   * another process, or by this process after its restart. Their current attempts do not count.
   */
  async drain(deadline: AbortSignal): Promise<void> {
    const { deliveries, log } = this.options;
    const aborted = new Promise((resolve) => deadline.addEventListener("abort", resolve, { once: true }));
    const pullsEnded = this.runningPulls.drain(deadline);
    if (!deadline.aborted) await Promise.race([pullsEnded, aborted]);
    if (this.runningPulls.listIds().length === 0) return;
    const logFailure = (err: unknown) =>
      log.warn({ err }, "the attempts of interrupted Git pulls could not be subtracted, so they count");
    await deliveries.returnAttempts(this.runningPulls.listIds()).catch(logFailure);
  }

  /**
   * Verifies the signature of a webhook. Queues a pull if it reports a push to a ref that the service pulls, and no pull of this ref waits.
   * @throws SIGNATURE_INVALID, also if no repository is connected to the app; REQUEST_INVALID, RATE_LIMIT_EXCEEDED, OVERLOADED
   */
  async receive(appId: number, request: GitWebhookRequest): Promise<GitWebhookResponse> {
    const { connections, deliveries, accessChecks } = this.options;
    const row = appId === 0 ? null : await connections.findRow(appId);
    const isSigned =
      row && isAuthenticGitWebhook(row.provider, request, await connections.readWebhookSecret(appId, row));
    if (!isSigned) throw new ActionError("SIGNATURE_INVALID");
    const ref = parsePushedRef(request.body, request.header("content-type"));
    const pushedRef = ref === null ? null : findPulledRefByName(ref, row);
    if (!pushedRef) return { status: "IGNORED" };
    const { networkAddress: address } = request;
    await accessChecks.countGitWebhook({ caller: null, ...(address !== undefined && { address }) }, appId);
    if (!(await deliveries.add(appId, pushedRef.ref)))
      throw createRateLimitError(
        `at most ${WAITING_GIT_WEBHOOKS_PER_APP_MAX} pulls of one app can wait; send the webhook again later`,
        RATE_WINDOW_MS / 1_000,
      );
    this.onAccepted();
    return { status: "ACCEPTED" };
  }
}
