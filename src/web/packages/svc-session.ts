/** `Svc.Session`: who the code runs for. Knows no token: a session here is a description, not a credential. */
import type { AppSession } from "../runtime/public-types.js";
import { define } from "./define.js";

const page = globalThis as unknown as {
  /** A server run's (specification, Authentication 3). */
  __svcSession?: AppSession | null;
  ENV?: { session?: AppSession };
  Svc?: { session?(): Promise<AppSession | null> };
};

// Taken once and removed, so that code which was not given the package does not find it.
const ofRun = page.__svcSession;
delete page.__svcSession;

/** A copy for each call: one piece of code cannot change what another reads. */
async function get(): Promise<AppSession | null> {
  if (ofRun !== undefined) return structuredClone(ofRun);
  return structuredClone(page.ENV?.session ?? (await page.Svc?.session?.()) ?? null);
}

define("Session", {
  /** The run's session, or the page's; null where nobody is known. */
  get,
  /** The session's user, or null. */
  user: async () => (await get())?.user ?? null,
});
