/** Roles of the person, read again when they may have changed: each half minute, when the window is shown, and after a refusal. */
import { useCallback, useEffect, useState } from "react";
import type { Api } from "../shared/api.js";
import { useRefresh } from "../shared/use-refresh.js";
import { type Roles, readRoles } from "./session.js";

const READ_AGAIN_MS = 30_000;

export function useRoles(api: Api, given: Roles) {
  const [roles, setRoles] = useState(given);
  const reloadRoles = useCallback(async () => {
    // The roles that are known stay until the service answers.
    await readRoles().then(
      (now) => setRoles((old) => (JSON.stringify(old) === JSON.stringify(now) ? old : now)),
      () => undefined,
    );
  }, []);
  useRefresh(api, reloadRoles, READ_AGAIN_MS);
  useEffect(() => api.onForbidden(() => void reloadRoles()), [api, reloadRoles]);
  return { roles, reloadRoles };
}
