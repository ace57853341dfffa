/** How many runs of the app have not ended, on every page, with what they are and their cancelling. */
import { useCallback, useEffect, useRef, useState } from "react";
import type { Tail } from "../actions/use-actions.js";
import { CancelRun, ListUnfinished, type ListUnfinishedQuery } from "../documents.js";
import { RunLine } from "../runs/run-line.js";
import type { Api } from "../shared/api.js";
import { hrefOf } from "./place.js";

type Unfinished = ListUnfinishedQuery["unfinished"];

/** No notice tells of a run that starts. */
const LOOK_MS = 5_000;
const LOOK_OPEN_MS = 1_500;
/** An ending is asked after at once, and many together once. */
const GATHER_MS = 300;

function useUnfinished(api: Api, appId: number, { onEntry }: Tail, isOpen: boolean) {
  const [unfinished, setUnfinished] = useState<Unfinished | null>(null);
  const read = useCallback(async () => {
    if (document.hidden) return;
    // What cannot be had is asked for again soon.
    await api.ask(ListUnfinished, { appId }).then(
      (answer) => setUnfinished(answer.unfinished),
      () => undefined,
    );
  }, [api, appId]);
  useEffect(() => {
    void read();
    let due: ReturnType<typeof setTimeout> | undefined;
    const timer = setInterval(() => void read(), isOpen ? LOOK_OPEN_MS : LOOK_MS);
    const end = onEntry(() => {
      due ??= setTimeout(() => {
        due = undefined;
        void read();
      }, GATHER_MS);
    });
    return () => {
      clearTimeout(due);
      clearInterval(timer);
      end();
    };
  }, [read, isOpen, onEntry]);
  return { unfinished, read };
}

const wordsOf = ({ running, queued }: Unfinished) =>
  [running > 0 && `${running} running`, queued > 0 && `${queued} waiting`].filter(Boolean).join(", ");

export function RunningChip({ api, appId, tail }: { api: Api; appId: number; tail: Tail }) {
  const [isOpen, setOpen] = useState(false);
  const { unfinished, read } = useUnfinished(api, appId, tail, isOpen);
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
  const words = unfinished ? wordsOf(unfinished) : "";
  if (words === "" && !isOpen) return null;
  const cancel = async (runId: number) => {
    // A run that has ended meanwhile cannot be cancelled.
    await api.ask(CancelRun, { appId, runId }).catch(() => undefined);
    // The button that had the focus goes with the run.
    button.current?.focus();
    await read();
  };
  return (
    <div ref={box} className="running">
      <button ref={button} type="button" className="chip live" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {words === "" ? "no runs" : words}
      </button>
      {isOpen && (
        <section className="running-list" aria-label="Runs that have not ended">
          <ul>
            {unfinished?.runs.map((run) => (
              <li key={run.id} className={`run-row ${run.state}`}>
                <RunLine {...{ run, appId, cancel }} />
              </li>
            ))}
          </ul>
          {unfinished && unfinished.runs.length < unfinished.running + unfinished.queued && (
            <p className="hint">The newest {unfinished.runs.length} of them.</p>
          )}
          <a href={hrefOf({ appId, view: "runs" })} onClick={() => setOpen(false)}>
            All runs
          </a>
        </section>
      )}
    </div>
  );
}
