/**
 * Sends the first requests before Studio's scripts are loaded, which saves time on slow connections: the session, the code of the open
 * page, the data of Home, and the code editor if an action is open.
 */
import { loadEditor } from "../actions/load-editor.js";
import { startHome } from "../home/read-home.js";
import { parsePlace } from "./place.js";
import { getRoleOnApp, mayEdit } from "./rights.js";
import { loadPage } from "./routes.js";
import { readSession, type Session } from "./session.js";

/** True for the URL of Studio itself. One-time links and unknown URLs have a longer path. */
export const isStudioPath = (): boolean => /\/studio\/?$/.test(location.pathname);

let startedSession: Promise<Session | null> | null = null;

async function sendFirstRequests(): Promise<Session | null> {
  const place = parsePlace(location.hash);
  // If this fails, Studio loads the page's code again and reports the error.
  const page = loadPage(place.view).catch(() => undefined);
  const session = await readSession();
  const appId = place.appId ?? session?.apps[0]?.id;
  if (session && !session.isProvisional && place.view === "home" && appId !== undefined)
    startHome(session.api, appId, mayEdit(getRoleOnApp(session, appId)));
  // The editor is loaded after the page, because its files would delay the page on a slow connection. The page shows the code as text until
  // then. If this fails, the workspace loads the editor again and reports the error.
  if (session && place.view === "actions" && place.item !== null) page.then(loadEditor).catch(() => undefined);
  if (session) await page;
  return session;
}

export function startReads(): void {
  if (isStudioPath()) startedSession = sendFirstRequests();
}

/**
 * Returns the session of the browser if it is signed in already, otherwise null. The first call returns the response to the request that
 * `startReads` has sent.
 */
export function currentSession(): Promise<Session | null> {
  const first = startedSession;
  startedSession = null;
  return first ?? readSession();
}
