/**
 * Sends the first requests before Studio's scripts are loaded: the session, the code of the open page, then the editor of an open action,
 * and the data of Home. This saves time on slow connections.
 */
import { loadEditor } from "../actions/load-editor.js";
import { startHome } from "../home/read-home.js";
import { parsePlace } from "./place.js";
import { mayEdit, roleOn } from "./rights.js";
import { loadPage } from "./routes.js";
import { presentSession, type Session } from "./session.js";

/** True for Studio's own URL. One-time links and unknown URLs have a longer path. */
export const isStudioPath = (): boolean => /\/studio\/?$/.test(location.pathname);

let startedSession: Promise<Session | null> | null = null;

async function start(): Promise<Session | null> {
  const place = parsePlace(location.hash);
  // If this fails, Studio loads the page again and reports the error.
  const page = loadPage(place.view).catch(() => undefined);
  const session = await presentSession();
  const appId = place.appId ?? session?.apps[0]?.id;
  if (session && !session.isProvisional && place.view === "home" && appId !== undefined)
    startHome(session.api, appId, mayEdit(roleOn(session, appId)));
  // After the page, which shows the code as text: otherwise the editor's files would delay it on a slow line. If this fails, the workspace
  // loads the editor again and reports the error.
  if (session && place.view === "actions" && place.item !== null) page.then(loadEditor).catch(() => undefined);
  if (session) await page;
  return session;
}

export function startReads(): void {
  if (isStudioPath()) startedSession = start();
}

/** Returns the session that the browser already has, or null. The first call returns the session that was requested at the start. */
export function currentSession(): Promise<Session | null> {
  const first = startedSession;
  startedSession = null;
  return first ?? presentSession();
}
