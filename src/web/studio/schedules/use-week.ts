/** Reads the week of an app's schedules, again each minute and after scheduled runs. */
import { useEffect, useState } from "react";
import type { Tail } from "../actions/use-actions.js";
import { ReadWeek } from "../documents.js";
import { type Api, type ApiError, asApiError } from "../shared/api.js";
import type { Week } from "../shared/model.js";

const READ_AGAIN_MS = 60_000;
const GATHER_MS = 1_000;
export function useWeek(api: Api, appId: number, { onEntry }: Tail) {
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
    const timer = setInterval(() => document.hidden || void read(), READ_AGAIN_MS);
    const end = onEntry((entry) => {
      if (entry.mode !== "scheduled") return;
      due ??= setTimeout(() => {
        due = undefined;
        void read();
      }, GATHER_MS);
    });
    return () => {
      isOver = true;
      clearTimeout(due);
      clearInterval(timer);
      end();
    };
  }, [api, appId, onEntry]);
  return { week, fault };
}
