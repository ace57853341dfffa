/** The Studio page: signed out, signed in, or the page of a one-time link. */
import "./style/tokens.css";
import "./style/base.css";
import "./style/shell.css";
import "./style/layout.css";
import "./style/panels.css";
import "./style/media.css";
import "./style/records.css";
import "./style/data.css";
import "./style/app.css";
import "./style/runs.css";
import "./style/home.css";
import "./style/phone.css";
import "./style/connections.css";
import "./style/mailbox.css";
import "./style/accounts.css";
import { useCallback, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { FinishAccount, LinkPage, linkPageOf } from "./accounts/link-pages.js";
import { watchSession } from "./accounts/renewal.js";
import { isUnknown, NotFound } from "./shell/not-found.js";
import { placeOf } from "./shell/place.js";
import { ROUTES } from "./shell/routes.js";
import type { Session } from "./shell/session.js";
import { SignIn } from "./shell/sign-in.js";
import { Studio } from "./shell/studio.js";

function Page() {
  const [session, setSession] = useState<Session | null>(null);
  useEffect(() => watchSession(session !== null), [session]);
  const signOut = useCallback(() => {
    watchSession(false);
    void session?.end().finally(() => setSession(null));
  }, [session]);
  if (session?.isProvisional) return <FinishAccount />;
  return session ? <Studio session={session} signOut={signOut} /> : <SignIn onSession={setSession} />;
}

const linkPage = linkPageOf(location.pathname);

const isLost = !linkPage && isUnknown(location.pathname);

// While the service says who works here. What does not come is asked for again, and told of, when the page is shown.
if (!linkPage && !isLost) ROUTES[placeOf(location.hash).view]().catch(() => undefined);

const root = document.getElementById("studio");
if (!root) throw new Error("the page has no #studio element");
createRoot(root).render(linkPage ? <LinkPage name={linkPage} /> : isLost ? <NotFound /> : <Page />);
