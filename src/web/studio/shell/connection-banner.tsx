/**
 * Banner that says that the connection is lost and that the data on the screen may be old. An expired session closes connections too; in
 * that case its own dialog is shown and nothing reconnects.
 */
import { useEffect, useState } from "react";
import { onExpiry } from "../accounts/renewal.js";
import type { Api } from "../shared/api.js";

export function ConnectionBanner({ api }: { api: Api }) {
  const [lost, setLost] = useState(false);
  const [isExpired, setExpired] = useState(false);
  useEffect(() => onExpiry(setExpired), []);
  useEffect(() => api.onConnected((connected) => setLost(!connected)), [api]);
  return (
    <p className="notice connection" role="status">
      {lost &&
        !isExpired &&
        "The connection to the service is lost. What you see may be old; it is tried again by itself."}
    </p>
  );
}
