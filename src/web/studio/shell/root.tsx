/** Root component of Studio: shows the sign-in page, a page of Studio, or the page of a one-time link. */
import { QueryClientProvider } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useState } from "react";
import { createRoot } from "react-dom/client";
import { FinishAccount, LinkPage, parseLinkPage } from "../accounts/link-pages.js";
import { setRequestPausing } from "../accounts/renewal.js";
import { createQueryClient } from "../shared/query-client.js";
import { NotFound } from "./not-found.js";
import type { Session } from "./session.js";
import { SignIn } from "./sign-in.js";
import { isStudioPath } from "./start.js";
import { Studio } from "./studio.js";

function Page() {
  const [session, setSession] = useState<Session | null>(null);
  useEffect(() => setRequestPausing(session !== null), [session]);
  const signOut = useCallback(() => {
    setRequestPausing(false);
    void session?.end().finally(() => setSession(null));
  }, [session]);
  const queries = useMemo(() => session && createQueryClient(session.api), [session]);
  // Clears the cache when the person signs out, so that the next person cannot see data of this person.
  useEffect(() => () => queries?.clear(), [queries]);
  if (session?.isProvisional) return <FinishAccount />;
  if (!session || !queries) return <SignIn onSession={setSession} />;
  return (
    <QueryClientProvider client={queries}>
      <Studio session={session} signOut={signOut} />
    </QueryClientProvider>
  );
}

function Content() {
  const linkPage = parseLinkPage(location.pathname);
  if (linkPage) return <LinkPage name={linkPage} />;
  return isStudioPath() ? <Page /> : <NotFound />;
}

const root = document.getElementById("studio");
if (!root) throw new Error("the page has no #studio element");
createRoot(root).render(<Content />);
