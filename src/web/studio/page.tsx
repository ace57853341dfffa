/** The Studio page: signed out or signed in, and nothing else. */
import "./style/base.css";
import "./style/layout.css";
import "./style/panels.css";
import "./style/media.css";
import "./style/records.css";
import "./style/data.css";
import "./style/app.css";
import "./style/runs.css";
import "./style/phone.css";
import "./style/mailbox.css";
import { useCallback, useState } from "react";
import { createRoot } from "react-dom/client";
import { placeOf } from "./place.js";
import { ROUTES } from "./routes.js";
import type { Session } from "./session.js";
import { SignIn } from "./sign-in.js";
import { Studio } from "./studio.js";

function Page() {
  const [session, setSession] = useState<Session | null>(null);
  const signOut = useCallback(() => {
    void session?.end().finally(() => setSession(null));
  }, [session]);
  return session ? <Studio session={session} signOut={signOut} /> : <SignIn onSession={setSession} />;
}

// While the service says who works here. What does not come is asked for again, and told of, when the page is shown.
ROUTES[placeOf(location.hash).view]().catch(() => undefined);

const root = document.getElementById("studio");
if (!root) throw new Error("the page has no #studio element");
createRoot(root).render(<Page />);
