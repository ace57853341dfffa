/** Root component of Studio: shows the sign-in page, a page of Studio, or the page of a one-time link. */
import { QueryClientProvider } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useState } from "react";
import { createRoot } from "react-dom/client";
import { FinishAccountPage, LinkPage, parseLinkPage } from "../accounts/link-pages.js";
import { setRequestPausing } from "../accounts/session-renewal.js";
import { asApiError } from "../shared/api.js";
import { createQueryClient } from "../shared/query-client.js";
import { NotFoundPage } from "./not-found.js";
import type { StudioSession } from "./session.js";
import { SignInPage } from "./sign-in.js";
import { isStudioPath } from "./start.js";
import { Studio } from "./studio.js";

function StudioRoot() {
  const [session, setSession] = useState<StudioSession | null>(null);
  useEffect(() => setRequestPausing(session !== null), [session]);
  const [signOutFault, setSignOutFault] = useState<string | null>(null);
  const signOut = useCallback(async () => {
    setSignOutFault(null);
    setRequestPausing(false);
    try {
      await session?.endSession();
      setSession(null);
    } catch (error) {
      setRequestPausing(true);
      setSignOutFault(asApiError(error).message);
    }
  }, [session]);
  const queryClient = useMemo(() => session && createQueryClient(session.api), [session]);
  // Clears the cache when the person signs out, so that the next person cannot see data of this person.
  useEffect(() => () => queryClient?.clear(), [queryClient]);
  if (session?.isProvisional) return <FinishAccountPage />;
  if (!session || !queryClient) return <SignInPage onSession={setSession} />;
  return (
    <QueryClientProvider client={queryClient}>
      <Studio {...{ session, signOutFault }} signOut={() => void signOut()} />
    </QueryClientProvider>
  );
}

function PageOfPath() {
  const linkPage = parseLinkPage(location.pathname);
  if (linkPage) return <LinkPage name={linkPage} />;
  return isStudioPath() ? <StudioRoot /> : <NotFoundPage />;
}

const rootElement = document.getElementById("studio");
if (!rootElement) throw new Error("the page has no #studio element");
createRoot(rootElement).render(<PageOfPath />);
