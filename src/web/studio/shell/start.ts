/**
 * Sends the first requests before Studio's scripts are loaded, which saves time on slow connections. They request the
 * session, the code of the open page, the data of Home, and the code editor if an action is open.
 */
import { loadCodeEditor } from "../actions/load-editor.js";
import { startReadingHomeData } from "../home/read-home.js";
import { getRoleOnApp, mayEdit } from "./rights.js";
import { loadStudioPage } from "./routes.js";
import { readSession, type StudioSession } from "./session.js";
import { parseRoute } from "./studio-route.js";

/** True for the URL of Studio itself. One-time links and unknown URLs have a longer path. */
export const isStudioPath = (): boolean => /\/studio\/?$/.test(location.pathname);

let startedSession: Promise<StudioSession | null> | null = null;

async function sendInitialRequests(): Promise<StudioSession | null> {
  const route = parseRoute(location.hash);
  // Ignores a failure: Studio later loads the page's code again and then reports the error.
  const page = loadStudioPage(route.view).catch(() => undefined);
  const session = await readSession();
  const appId = route.appId ?? session?.apps[0]?.id;
  if (session && !session.isProvisional && route.view === "home" && appId !== undefined)
    startReadingHomeData(session.api, appId, mayEdit(getRoleOnApp(session, appId)));
  // Loads the editor after the page: on a slow connection, it would delay the page's files. The workspace reports a failure later.
  if (session && route.view === "actions" && route.item !== null) page.then(loadCodeEditor).catch(() => undefined);
  if (session) await page;
  return session;
}

export function startInitialRequests(): void {
  if (isStudioPath()) startedSession = sendInitialRequests();
}

/** Returns the result of `readSession`. The first call uses the request that `startInitialRequests` has sent. */
export function readCurrentSession(): Promise<StudioSession | null> {
  const first = startedSession;
  startedSession = null;
  return first ?? readSession();
}
