/** Reads the week of an app's schedules, again each minute, after scheduled runs and after changes of actions. */
import { useEffect, useState } from "react";
import type { Actions } from "../actions/use-actions.js";
import { ReadWeek } from "../documents.js";
import { type Api, type ApiError, asApiError } from "../shared/api.js";
import type { Week } from "../shared/model.js";

const REFRESH_MS = 60_000;
const GATHER_MS = 1_000;

export function useWeek(api: Api, appId: number, { tail, changes }: Actions) {
  const { onEntry } = tail;
  const { onChange } = changes;
  const [week, setWeek] = useState<Week | null>(null);
  const [fault, setFault] = useState<ApiError | null>(null);
  useEffect(() => {
    let isOver = false;
    let due: ReturnType<typeof setTimeout> | undefined;
    const read = () =>
      api.ask(ReadWeek, { appId }).then(
        (answer) => {
          if (isOver) return;
          setWeek(answer.week);
          setFault(null);
        },
        (error) => isOver || setFault(asApiError(error)),
      );
    void read();
    const timer = setInterval(() => document.hidden || void read(), REFRESH_MS);
    const readSoon = () => {
      due ??= setTimeout(() => {
        due = undefined;
        void read();
      }, GATHER_MS);
    };
    const ends = [onEntry(({ mode }) => mode === "scheduled" && readSoon()), onChange(readSoon)];
    return () => {
      isOver = true;
      clearTimeout(due);
      clearInterval(timer);
      for (const end of ends) end();
    };
  }, [api, appId, onEntry, onChange]);
  return { week, fault };
}
