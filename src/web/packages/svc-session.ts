/** Package `Svc.Session`: returns the session of the page or run, and signs app users in and out. A session is not a credential. */
import type { AppSession, Session } from "../runtime/public-types.js";
import { getConnection } from "./connection.js";
import { defineSvcNamespace } from "./define.js";

const globalObject = globalThis as unknown as {
  /** Session of a server run, which the service sets before the run; undefined in a page. */
  __svcSession?: AppSession | null;
  ENV?: { session?: AppSession };
  Svc?: { session?(): Promise<AppSession | null> };
};

const { parse, stringify } = JSON;

// Stores the session of the server run as text and removes it from the global object, so that other code cannot change it.
const runSession = globalObject.__svcSession === undefined ? undefined : stringify(globalObject.__svcSession);
delete globalObject.__svcSession;

/** Returns a copy, so that no caller can change the session that other callers get. Some server runs have no `structuredClone`. */
const copySession = (session: AppSession | null): AppSession | null => parse(stringify(session));

async function getSession(): Promise<AppSession | null> {
  if (runSession !== undefined) return parse(runSession);
  return copySession(globalObject.ENV?.session ?? (await globalObject.Svc?.session?.()) ?? null);
}

/** Requests a change of the page's session. Discards the cached session, because another user may be signed in after the change. */
async function changeSession(method: "POST" | "PUT" | "DELETE", body?: unknown): Promise<AppSession> {
  const { appId, request, forgetSession } = getConnection();
  const { session } = await request(method, `/v1/apps/${appId()}/session`, body);
  forgetSession();
  return session as AppSession;
}

defineSvcNamespace("Session", {
  get: getSession,
  user: async () => (await getSession())?.user ?? null,
  authorize: (credentials) => changeSession("POST", credentials),
  async verify(verification) {
    const { appId, request, forgetSession } = getConnection();
    const answer = await request("POST", `/v1/apps/${appId()}/session/verify`, verification);
    if (answer["session"]) forgetSession();
    return answer;
  },
  logout: () => changeSession("DELETE"),
  set: (fields) => changeSession("PUT", fields),
} satisfies Session);
