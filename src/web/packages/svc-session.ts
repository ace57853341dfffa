/** `Svc.Session`: who the code runs for. Knows no token: a session here is a description, not a credential. */
import type { AppSession, Session } from "../runtime/public-types.js";
import { connection } from "./connection.js";
import { define } from "./define.js";

const page = globalThis as unknown as {
  /** A server run's (specification, Authentication 3). */
  __svcSession?: AppSession | null;
  ENV?: { session?: AppSession };
  Svc?: { session?(): Promise<AppSession | null> };
};

const { parse, stringify } = JSON;

// Taken once and removed, so that code which was not given the package does not find it; as a text, which no other code can change.
const ofRun = page.__svcSession === undefined ? undefined : stringify(page.__svcSession);
delete page.__svcSession;

/** A copy for each call: one piece of code cannot change what another reads. By the language alone, which is all that most runs have. */
const copyOf = (session: AppSession | null): AppSession | null => parse(stringify(session));

async function get(): Promise<AppSession | null> {
  if (ofRun !== undefined) return parse(ofRun);
  return copyOf(page.ENV?.session ?? (await page.Svc?.session?.()) ?? null);
}

/** Of the page itself: what it knew of its session is another's from then on. */
async function change(method: "POST" | "PUT" | "DELETE", body?: unknown): Promise<AppSession> {
  const { appId, request, forgetSession } = connection();
  const { session } = await request(method, `/v1/apps/${appId()}/session`, body);
  forgetSession();
  return session as AppSession;
}

define("Session", {
  get,
  user: async () => (await get())?.user ?? null,
  authorize: (how) => change("POST", how),
  async verify(what) {
    const { appId, request, forgetSession } = connection();
    const answer = await request("POST", `/v1/apps/${appId()}/session/verify`, what);
    if (answer["session"]) forgetSession();
    return answer;
  },
  logout: () => change("DELETE"),
  set: (fields) => change("PUT", fields),
} satisfies Session);
