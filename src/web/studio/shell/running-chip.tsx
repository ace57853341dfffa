/** Button in the top bar with the number of queued and running runs of the app. It opens a list in which the person can cancel them. */
import { useEffect, useRef, useState } from "react";
import type { LogSubscription } from "../actions/use-actions.js";
import { ListUnfinishedRuns, type ListUnfinishedRunsQuery } from "../documents.js";
import { cancelRun } from "../runs/cancel-run.js";
import { RunLine } from "../runs/run-line.js";
import type { ApiClient } from "../shared/api.js";
import { useReloadAfterEvents } from "../shared/use-reload-after.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import { createHref } from "./studio-route.js";

type UnfinishedRuns = ListUnfinishedRunsQuery["unfinished"];

/** Interval between reads while the list is closed, because the service sends no event when a run starts. */
const REFRESH_INTERVAL_MS = 5_000;
const OPEN_REFRESH_INTERVAL_MS = 1_500;
/** Delay from the end of a run to the next read, so that several ended runs cause only one read. */
const RELOAD_DELAY_MS = 300;

/** Shows the numbers of running and queued runs. On a phone, shows the queued runs only if no run is running. */
function RunCounts({ running, queued }: UnfinishedRuns) {
  return (
    <>
      {running > 0 && `${running} running`}
      {queued > 0 && (
        <span className={running > 0 ? "minor" : ""}>
          {running > 0 && ", "}
          {queued} queued
        </span>
      )}
    </>
  );
}

interface RunningChipProps {
  api: ApiClient;
  appId: number;
  logSubscription: LogSubscription;
}

export function RunningChip({ api, appId, logSubscription }: RunningChipProps) {
  const [isOpen, setOpen] = useState(false);
  const { value, reload } = useResource({
    ...createQueryOptions(ListUnfinishedRuns, { appId }),
    refetchInterval: isOpen ? OPEN_REFRESH_INTERVAL_MS : REFRESH_INTERVAL_MS,
  });
  useReloadAfterEvents(logSubscription.onEntry, reload, RELOAD_DELAY_MS);
  const unfinished = value?.unfinished;
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    const onPointer = (event: PointerEvent) => box.current?.contains(event.target as Node) || setOpen(false);
    const onMove = () => setOpen(false);
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      setOpen(false);
      button.current?.focus();
    };
    addEventListener("keydown", onKey);
    addEventListener("pointerdown", onPointer);
    addEventListener("popstate", onMove);
    return () => {
      removeEventListener("keydown", onKey);
      removeEventListener("pointerdown", onPointer);
      removeEventListener("popstate", onMove);
    };
  }, [isOpen]);
  const hasRuns = unfinished !== undefined && unfinished.running + unfinished.queued > 0;
  if (!hasRuns && !isOpen) return null;
  const cancelAndReload = async (runId: number) => {
    await cancelRun(api, appId, runId);
    // Focuses the button that opens the list, because the button "Cancel", which had the focus, disappears with the run.
    button.current?.focus();
    await reload();
  };
  return (
    <div ref={box} className="running">
      <button
        ref={button}
        type="button"
        className="chip live"
        aria-expanded={isOpen}
        onClick={() => {
          setOpen(!isOpen);
          void reload();
        }}
      >
        {hasRuns ? <RunCounts {...unfinished} /> : "no runs"}
      </button>
      {isOpen && (
        <section className="running-list" aria-label="Runs that have not ended">
          <ul>
            {unfinished?.runs.map((run) => (
              <li key={run.id} className={`run-row ${run.state}`}>
                <RunLine {...{ run, appId, cancelRun: cancelAndReload }} />
              </li>
            ))}
          </ul>
          {unfinished && unfinished.runs.length < unfinished.running + unfinished.queued && (
            <p className="hint">The newest {unfinished.runs.length} of them.</p>
          )}
          <a href={createHref({ appId, view: "runs" })} onClick={() => setOpen(false)}>
            All runs
          </a>
        </section>
      )}
    </div>
  );
}
