/** Says that the connection is lost, until it is back: what is on the screen may be old meanwhile. */
import { useEffect, useState } from "react";
import type { Api } from "../shared/api.js";

export function ConnectionBanner({ api }: { api: Api }) {
  const [lost, setLost] = useState(false);
  useEffect(() => api.onConnected((connected) => setLost(!connected)), [api]);
  return (
    <p className="notice connection" role="status">
      {lost && "The connection to the service is lost. What you see may be old; it is tried again by itself."}
    </p>
  );
}
