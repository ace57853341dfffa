/** Package `Svc.Session`: describes the user of the page or run. This file never uses the session as a credential. */
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

// Copy of the server run's session as JSON text, which other code cannot change. `delete` then removes the global
// variable, so that other code cannot read the session from it.
const runSession = globalObject.__svcSession === undefined ? undefined : stringify(globalObject.__svcSession);
delete globalObject.__svcSession;

/**
 * Returns a copy of the session, so that a caller that changes its copy affects no other caller. Does not use
 * `structuredClone`, because server runs without a browser page lack this function.
 */
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
  authorize: (how) => changeSession("POST", how),
  async verify(verification) {
    const { appId, request, forgetSession } = getConnection();
    const answer = await request("POST", `/v1/apps/${appId()}/session/verify`, verification);
    if (answer["session"]) forgetSession();
    return answer;
  },
  logout: () => changeSession("DELETE"),
  set: (fields) => changeSession("PUT", fields),
} satisfies Session);
