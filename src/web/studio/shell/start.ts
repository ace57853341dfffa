/**
 * Requests that Studio sends before its scripts are loaded: who is signed in, the code of the open page, and the data of Home. On a slow line
 * they arrive while the scripts are still on their way.
 */
import { startHome } from "../home/read-home.js";
import { placeOf } from "./place.js";
import { mayEdit, roleOn } from "./rights.js";
import { ROUTES } from "./routes.js";
import { presentSession, type Session } from "./session.js";

/** True for Studio's own address. The pages of one-time links and unknown addresses are below it. */
export const isStudioPath = (): boolean => /\/studio\/?$/.test(location.pathname);

let started: Promise<Session | null> | null = null;

async function start(): Promise<Session | null> {
  const session = await presentSession();
  const place = placeOf(location.hash);
  const appId = place.appId ?? session?.apps[0]?.id;
  if (session && !session.isProvisional && place.view === "home" && appId !== undefined)
    startHome(session.api, appId, mayEdit(roleOn(session, appId)));
  return session;
}

export function startReads(): void {
  if (!isStudioPath()) return;
  started = start();
  // The page loads its code again when it is shown, and reports a failure then.
  ROUTES[placeOf(location.hash).view]().catch(() => undefined);
}

/** Returns the session that the browser already has; null without one. The first call returns the one that was requested at the start. */
export function currentSession(): Promise<Session | null> {
  const first = started;
  started = null;
  return first ?? presentSession();
}
