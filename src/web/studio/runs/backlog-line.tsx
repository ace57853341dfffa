/** Backlog of the app above its runs, with a button that cancels all queued runs. Hidden if no run is queued. */
import { useCallback, useEffect, useState } from "react";
import { CancelBacklog, ReadBacklog, type ReadBacklogQuery } from "../documents.js";
import { type Api, asApiError } from "../shared/api.js";
import type { Ask } from "../shared/confirm.js";
import { counted, lasted, sized } from "../shared/format.js";
import { Operations } from "../shell/role.js";

type Backlog = ReadBacklogQuery["backlog"];

const LOOK_MS = 3_000;

const countedRuns = (runs: number) => counted(runs, "run", "runs");

/** As many requests as it takes: each works for some seconds. */
async function cancelAll(api: Api, appId: number): Promise<number> {
  for (let total = 0; ; ) {
    const { cancelled } = await api.ask(CancelBacklog, { appId });
    total += cancelled.cancelled;
    if (!cancelled.more) return total;
  }
}

function useBacklog(api: Api, appId: number) {
  const [backlog, setBacklog] = useState<Backlog | null>(null);
  const read = useCallback(async () => {
    if (document.hidden) return;
    // What cannot be had is asked for again soon.
    await api.ask(ReadBacklog, { appId }).then(
      (answer) => setBacklog(answer.backlog),
      () => undefined,
    );
  }, [api, appId]);
  useEffect(() => {
    void read();
    const timer = setInterval(() => void read(), LOOK_MS);
    return () => clearInterval(timer);
  }, [read]);
  return { backlog, read };
}

export function BacklogLine({ api, appId, ask }: { api: Api; appId: number; ask: Ask }) {
  const { backlog, read } = useBacklog(api, appId);
  const [said, setSaid] = useState("");
  const [busy, setBusy] = useState(false);
  async function cancel(): Promise<void> {
    const sure = await ask({
      title: "Cancel all queued runs?",
      text: "All queued runs of this app are cancelled, also those that are queued meanwhile. Running runs continue.",
      yes: "Cancel them",
      danger: true,
    });
    if (!sure) return;
    setBusy(true);
    setSaid("");
    await cancelAll(api, appId).then(
      (runs) => setSaid(`${countedRuns(runs)} cancelled.`),
      (error: unknown) => setSaid(asApiError(error).message),
    );
    setBusy(false);
    await read();
  }
  const waits = backlog !== null && backlog.runs > 0 ? backlog : null;
  if (!waits && said === "") return null;
  return (
    <section className="row backlog" aria-label="Backlog">
      {waits && (
        <p>
          {countedRuns(waits.runs)} queued
          {waits.oldestAt && <>, the oldest for {lasted(Math.max(0, Date.now() - Date.parse(waits.oldestAt)))}</>}, with{" "}
          {sized(waits.bytes)} of payloads
        </p>
      )}
      <p role="status">{said}</p>
      {waits && (
        <Operations>
          <button type="button" disabled={busy} onClick={() => void cancel()}>
            Cancel all queued runs
          </button>
        </Operations>
      )}
    </section>
  );
}
