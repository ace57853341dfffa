/**
 * Hook for the roles of the signed-in person. It reads them every 30 seconds, when the window gets the focus, and after the service has
 * denied a permission.
 */
import { useEffect } from "react";
import type { ApiClient } from "../shared/api.js";
import { useResource } from "../shared/use-resource.js";
import { type PersonRoles, readPersonRoles } from "./session.js";

const REFRESH_INTERVAL_MS = 30_000;

export function usePersonRoles(api: ApiClient, initialRoles: PersonRoles) {
  // Uses the roles from the start of the session until the service responds.
  const { value, reload } = useResource({
    queryKey: ["roles"],
    queryFn: readPersonRoles,
    initialData: initialRoles,
    refetchOnMount: false,
    refetchInterval: REFRESH_INTERVAL_MS,
  });
  useEffect(() => api.onForbidden(() => void reload()), [api, reload]);
  return { roles: value ?? initialRoles, reloadRoles: reload };
}
