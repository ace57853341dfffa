/** Hook for the roles of the person. Reads them every 30 seconds, when the window becomes visible, and after a denied permission. */
import { useEffect } from "react";
import type { Api } from "../shared/api.js";
import { useResource } from "../shared/use-resource.js";
import { type Roles, readRoles } from "./session.js";

const REFRESH_MS = 30_000;

export function useRoles(api: Api, initialRoles: Roles) {
  // The known roles stay until the service responds.
  const { value, reload } = useResource({
    queryKey: ["roles"],
    queryFn: readRoles,
    initialData: initialRoles,
    refetchOnMount: false,
    refetchInterval: REFRESH_MS,
  });
  useEffect(() => api.onForbidden(() => void reload()), [api, reload]);
  return { roles: value ?? initialRoles, reloadRoles: reload };
}
