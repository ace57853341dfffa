/**
 * Sends the first requests before Studio's scripts are loaded, which saves time on slow connections. They request the session and the code
 * of the open page. If Home is open, they also request its data. If an action is open, they also request the code editor.
 */
import { loadCodeEditor } from "../actions/load-editor.js";
import { prefetchHomeData } from "../home/read-home.js";
import { getRoleOnApp, mayEdit } from "./rights.js";
import { loadStudioPage } from "./routes.js";
import { readSession, type StudioSession } from "./session.js";
import { parseRoute } from "./studio-route.js";

/** True for the URL of Studio itself. One-time links and unknown URLs have a longer path. */
export const isStudioPath = (): boolean => /\/studio\/?$/.test(location.pathname);

let initialSession: Promise<StudioSession | null> | null = null;

async function sendInitialRequests(): Promise<StudioSession | null> {
  const route = parseRoute(location.hash);
  // Ignores a failure: Studio later loads the page's code again and then reports the error.
  const page = loadStudioPage(route.view).catch(() => undefined);
  const session = await readSession();
  const appId = route.appId ?? session?.apps[0]?.id;
  if (session && !session.isProvisional && route.view === "home" && appId !== undefined)
    prefetchHomeData(session.api, appId, mayEdit(getRoleOnApp(session, appId)));
  // Loads the code editor after the page, because the editor's files would delay the page's files on a slow connection.
  // Ignores a failure: the workspace reports it later.
  if (session && route.view === "actions" && route.item !== null) page.then(loadCodeEditor).catch(() => undefined);
  if (session) await page;
  return session;
}

export function startInitialRequests(): void {
  if (isStudioPath()) initialSession = sendInitialRequests();
}

/** Returns the result of `readSession`. The first call uses the request that `startInitialRequests` has sent. */
export function readCurrentSession(): Promise<StudioSession | null> {
  const pendingSession = initialSession;
  initialSession = null;
  return pendingSession ?? readSession();
}
