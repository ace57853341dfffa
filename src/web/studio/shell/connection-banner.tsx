/**
 * Banner that shows that the connection is lost and that the data on the screen may be old. It is not shown for an expired session, which
 * also closes the connection but has its own dialog.
 */
import { useEffect, useState } from "react";
import { onSessionExpiry } from "../accounts/session-renewal.js";
import type { ApiClient } from "../shared/api.js";

export function ConnectionBanner({ api }: { api: ApiClient }) {
  const [isLost, setLost] = useState(false);
  const [isExpired, setExpired] = useState(false);
  useEffect(() => onSessionExpiry(setExpired), []);
  useEffect(() => api.onConnected((connected) => setLost(!connected)), [api]);
  return (
    <p className="notice connection" role="status">
      {isLost &&
        !isExpired &&
        "The connection to the service is lost. The data on this page may be old. Studio reconnects automatically."}
    </p>
  );
}
