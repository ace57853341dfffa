/** Package `Svc.Session`: describes the user for whom the code runs. This file never uses the session as a credential. */
import type { AppSession, Session } from "../runtime/public-types.js";
import { connection } from "./connection.js";
import { define } from "./define.js";

const page = globalThis as unknown as {
  /** Session that a server run receives; undefined in a page. */
  __svcSession?: AppSession | null;
  ENV?: { session?: AppSession };
  Svc?: { session?(): Promise<AppSession | null> };
};

const { parse, stringify } = JSON;

// Read once and removed, so that code without the package does not find it; stored as text, which other code cannot change.
const ofRun = page.__svcSession === undefined ? undefined : stringify(page.__svcSession);
delete page.__svcSession;

/**
 * Returns a copy for each caller, so that code cannot change what other code reads. Uses only the language itself, because most runs have
 * nothing else.
 */
const copyOf = (session: AppSession | null): AppSession | null => parse(stringify(session));

async function get(): Promise<AppSession | null> {
  if (ofRun !== undefined) return parse(ofRun);
  return copyOf(page.ENV?.session ?? (await page.Svc?.session?.()) ?? null);
}

/** Changes the page's session and discards the cached one, which may belong to another user now. */
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
