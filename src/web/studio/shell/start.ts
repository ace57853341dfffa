/**
 * Sends the first requests before Studio's scripts are loaded: the session, the code of the open page, the editor of an open action, and
 * the data of Home. This saves time on slow connections.
 */
import { loadEditor } from "../actions/load-editor.js";
import { startHome } from "../home/read-home.js";
import { loadPage } from "./pages.js";
import { mayEdit, roleOn } from "./rights.js";
import { idOf } from "./search.js";
import { presentSession, type Session } from "./session.js";
import { VIEW_NAMES } from "./views.js";

/** True for Studio's own URL. One-time links and unknown URLs have a longer path. */
export const isStudioPath = (): boolean => /\/studio\/?$/.test(location.pathname);

let started: Promise<Session | null> | null = null;

async function start(): Promise<Session | null> {
  // The router, which reads the URL in all its forms, is loaded later.
  const [, ...parts] = location.hash.split("?", 1)[0]!.split("/");
  const asked = idOf(parts[0]);
  const [name, item] = asked === null ? parts : parts.slice(1);
  const view = VIEW_NAMES.find((one) => one === name) ?? "home";
  // If this fails, Studio loads the page again and reports the error.
  const page = loadPage(view).catch(() => undefined);
  const session = await presentSession();
  const appId = asked ?? session?.apps[0]?.id;
  if (session && !session.isProvisional && view === "home" && appId !== undefined)
    startHome(session.api, appId, mayEdit(roleOn(session, appId)));
  // If this fails, the workspace loads the editor again and reports the error.
  if (session && view === "actions" && item) loadEditor().catch(() => undefined);
  if (session) await page;
  return session;
}

export function startReads(): void {
  if (isStudioPath()) started = start();
}

/** Returns the session that the browser already has, or null. The first call returns the session that was requested at the start. */
export function currentSession(): Promise<Session | null> {
  const first = started;
  started = null;
  return first ?? presentSession();
}
