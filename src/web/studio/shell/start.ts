/**
 * Requests that Studio sends before its scripts are loaded: who is signed in, the code of the open page, the editor of an open action, and
 * the data of Home. On a slow line they arrive while the scripts are still on their way.
 */
import { loadEditor } from "../actions/load-editor.js";
import { startHome } from "../home/read-home.js";
import { placeOf } from "./place.js";
import { mayEdit, roleOn } from "./rights.js";
import { loadPage } from "./routes.js";
import { presentSession, type Session } from "./session.js";

/** True for Studio's own address. The pages of one-time links and unknown addresses are below it. */
export const isStudioPath = (): boolean => /\/studio\/?$/.test(location.pathname);

let started: Promise<Session | null> | null = null;

async function start(): Promise<Session | null> {
  const place = placeOf(location.hash);
  // The frame loads the page again if this fails, and reports it.
  const page = loadPage(place.view).catch(() => undefined);
  const session = await presentSession();
  const appId = place.appId ?? session?.apps[0]?.id;
  if (session && !session.isProvisional && place.view === "home" && appId !== undefined)
    startHome(session.api, appId, mayEdit(roleOn(session, appId)));
  // The workspace loads it again if this fails, and reports it.
  if (session && place.view === "actions" && place.item !== null) loadEditor().catch(() => undefined);
  if (session) await page;
  return session;
}

export function startReads(): void {
  if (isStudioPath()) started = start();
}

/** Returns the session that the browser already has; null without one. The first call returns the one that was requested at the start. */
export function currentSession(): Promise<Session | null> {
  const first = started;
  started = null;
  return first ?? presentSession();
}
