/**
 * Hook that returns the errors in the code for which the service would reject a save. It requests them each time the
 * person pauses typing.
 */
import { useEffect, useState } from "react";
import { FindCodeProblems } from "../documents.js";
import type { ApiClient } from "../shared/api.js";
import type { CodeProblem } from "../shared/model.js";
import type { ActionDraft } from "./draft.js";

const CHECK_DELAY_MS = 600;
/** Maximum length of code that Studio sends for a check while the person types. Longer code is checked only when it is saved. */
const MAX_CHECKED_CHARACTERS = 200_000;

export function useCodeProblems(api: ApiClient, appId: number, draft: ActionDraft | null): CodeProblem[] {
  const [problems, setProblems] = useState<CodeProblem[]>([]);
  const code = draft?.code ?? "";
  const dependenciesJson = JSON.stringify(draft?.dependencies ?? []);
  useEffect(() => {
    let isOver = false;
    if (code.trim() === "" || code.length > MAX_CHECKED_CHARACTERS) {
      setProblems([]);
      return;
    }
    const timer = setTimeout(() => {
      const dependencies = JSON.parse(dependenciesJson) as string[];
      api.request(FindCodeProblems, { appId, code, dependencies }).then(
        (answer) => isOver || setProblems(answer.problems),
        // If the request fails, shows no errors; the next save reports them.
        () => isOver || setProblems([]),
      );
    }, CHECK_DELAY_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [api, appId, code, dependenciesJson]);
  return problems;
}
