/** Line above the list of runs with the number of queued runs, and a button that cancels all of them. Hidden if no runs are queued. */
import { useState } from "react";
import { CancelQueuedRuns, CountQueuedRuns } from "../documents.js";
import { type ApiClient, asApiError } from "../shared/api.js";
import type { ConfirmFunction } from "../shared/confirm.js";
import { formatBytes, formatCount, formatDuration } from "../shared/format.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import { ForOperators } from "../shell/role.js";

const REFRESH_INTERVAL_MS = 3_000;

const formatRunCount = (runs: number) => formatCount(runs, "run", "runs");

/**
 * Cancels all queued runs. The service stops cancelling after a few seconds, so the page repeats the request until no queued run is left.
 * Returns the number of cancelled runs.
 */
async function cancelAllQueued(api: ApiClient, appId: number): Promise<number> {
  for (let total = 0; ; ) {
    const { cancelled } = await api.request(CancelQueuedRuns, { appId });
    total += cancelled.cancelled;
    if (!cancelled.more) return total;
  }
}

export function QueuedRunsLine({ api, appId, confirm }: { api: ApiClient; appId: number; confirm: ConfirmFunction }) {
  // If a read fails, the line still shows the previous number.
  const { value, reload } = useResource({
    ...createQueryOptions(CountQueuedRuns, { appId }),
    refetchInterval: REFRESH_INTERVAL_MS,
  });
  const [message, setMessage] = useState("");
  const [busy, setBusy] = useState(false);
  async function cancel(): Promise<void> {
    const isConfirmed = await confirm({
      title: "Cancel all queued runs?",
      explanation:
        "This cancels all queued runs of this app, also those that are queued meanwhile. Running runs continue.",
      confirmLabel: "Cancel them",
      isDangerous: true,
    });
    if (!isConfirmed) return;
    setBusy(true);
    setMessage("");
    await cancelAllQueued(api, appId).then(
      (runs) => setMessage(`${formatRunCount(runs)} cancelled.`),
      (error: unknown) => setMessage(asApiError(error).message),
    );
    setBusy(false);
    await reload();
  }
  const backlog = value && value.backlog.runs > 0 ? value.backlog : null;
  if (!backlog && message === "") return null;
  return (
    <section className="row backlog" aria-label="Backlog">
      {backlog && (
        <p>
          {formatRunCount(backlog.runs)} queued
          {backlog.oldestAt && (
            <>, the oldest for {formatDuration(Math.max(0, Date.now() - Date.parse(backlog.oldestAt)))}</>
          )}
          , with {formatBytes(backlog.bytes)} of payloads
        </p>
      )}
      <p role="status">{message}</p>
      {backlog && (
        <ForOperators>
          <button type="button" disabled={busy} onClick={() => void cancel()}>
            Cancel all queued runs
          </button>
        </ForOperators>
      )}
    </section>
  );
}
