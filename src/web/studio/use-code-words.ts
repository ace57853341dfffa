/** What the editor can say of an action's code: its app's settings, what past runs were given, and the packages. Draws nothing. */
import { useEffect, useMemo, useState } from "react";
import packages from "../../rules/packages.json";
import { serviceAddress } from "../service-address.js";
import type { Api } from "./api.js";
import { codeWords, type Words } from "./code-words.js";
import { LearnPayloads, ListSettingKeys } from "./documents.js";
import type { Draft } from "./draft.js";

const PAYLOADS_LEARNED = 10;

let types: Promise<string> | undefined;

/** The declarations of the client library, read once. What cannot be had is done without. */
function readTypes(): Promise<string> {
  types ??= fetch(serviceAddress("/client/svc.d.ts"))
    .then((answer) => (answer.ok ? answer.text() : ""))
    .catch(() => "");
  return types;
}

interface Learned {
  types: string;
  settings: string[];
  payloads: unknown[];
}

const NOTHING: Learned = { types: "", settings: [], payloads: [] };

/** @param ids the action's copies; none of a new one */
export function useCodeWords(api: Api, appId: number, ids: readonly number[], draft: Draft | null): Words {
  const [learned, setLearned] = useState(NOTHING);
  const copies = JSON.stringify(ids);
  useEffect(() => {
    let isOver = false;
    const learn = async (): Promise<Learned> => {
      const asked = (JSON.parse(copies) as number[]).map((id) =>
        api.ask(LearnPayloads, { appId, options: { id, limit: PAYLOADS_LEARNED } }),
      );
      const [text, { keys }, ...pages] = await Promise.all([
        readTypes(),
        api.ask(ListSettingKeys, { appId }),
        ...asked,
      ]);
      return {
        types: text,
        settings: keys.map(({ key }) => key),
        payloads: pages.flatMap(({ page }) => page.logs.map(({ payload }) => payload)),
      };
    };
    // Without them one writes as in any editor.
    void learn().then(
      (all) => isOver || setLearned(all),
      () => undefined,
    );
    return () => {
      isOver = true;
    };
  }, [api, appId, copies]);
  const environment = draft?.environment ?? "server";
  const listed = JSON.stringify(draft?.dependencies ?? []);
  return useMemo(
    () => codeWords({ ...learned, packages, environment, dependencies: JSON.parse(listed) as string[] }),
    [learned, environment, listed],
  );
}
