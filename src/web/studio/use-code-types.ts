/** What the editor can say of an action's code: its app's settings, what past runs were given, and the packages. Draws nothing. */
import { useEffect, useMemo, useState } from "react";
import packages from "../../rules/packages.json";
import { serviceAddress } from "../service-address.js";
import type { Api } from "./api.js";
import { type ActionTypes, actionTypes, type Installed, loosened } from "./code-types.js";
import { LearnPayloads, ListSettingKeys } from "./documents.js";
import type { Draft } from "./draft.js";

const PAYLOADS_LEARNED = 10;

let types: Promise<string> | undefined;

/** The declarations of the client library, read once. What cannot be had is done without. */
function readTypes(): Promise<string> {
  types ??= fetch(serviceAddress("/client/svc.d.ts"))
    .then(async (answer) => (answer.ok ? loosened(await answer.text()) : ""))
    .catch(() => "");
  return types;
}

interface Learned {
  types: string;
  settings: string[];
  payloads: unknown[];
}

const NOTHING: Learned = { types: "", settings: [], payloads: [] };

/** What is known for the editor: of the client library, and of this action. */
export interface CodeTypes extends ActionTypes {
  library: string;
}

/**
 * @param ids the action's copies; none of a new one
 * @param installed what its dependencies became when it was saved
 */
export function useCodeTypes(
  api: Api,
  appId: number,
  ids: readonly number[],
  draft: Draft | null,
  installed: readonly Installed[],
): CodeTypes {
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
  return useMemo(() => {
    const { types: library, ...known } = learned;
    const dependencies = JSON.parse(listed) as string[];
    return { library, ...actionTypes({ ...known, packages, environment, dependencies, installed }) };
  }, [learned, environment, listed, installed]);
}
