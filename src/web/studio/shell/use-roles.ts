/** Roles of the person, read again when they may have changed: each half minute, when the window is shown, and after a refusal. */
import { useEffect } from "react";
import type { Api } from "../shared/api.js";
import { useResource } from "../shared/use-resource.js";
import { type Roles, readRoles } from "./session.js";

const REFRESH_MS = 30_000;

export function useRoles(api: Api, given: Roles) {
  // The roles that are known stay until the service answers.
  const { value, reload } = useResource({
    queryKey: ["roles"],
    queryFn: readRoles,
    initialData: given,
    refetchOnMount: false,
    refetchInterval: REFRESH_MS,
  });
  useEffect(() => api.onForbidden(() => void reload()), [api, reload]);
  return { roles: value ?? given, reloadRoles: reload };
}
