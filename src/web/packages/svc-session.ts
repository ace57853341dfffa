/** `Svc.Session`: who the code runs for. Knows no token: a session here is a description, not a credential. */
import { define } from "./define.js";

/** The invoking app user's session (specification, Authentication 3). */
export interface Session {
  appId: number;
  /** null: a run without a user, such as a scheduled one. */
  user: { id: number; firstName: string; lastName: string; email: string } | null;
  environment: "master" | "production";
}

const page = globalThis as unknown as { __svcSession?: Session | null; ENV?: { session?: Session | null } };

// Taken once and removed, so that code which was not given the package does not find it.
const session = page.__svcSession ?? page.ENV?.session ?? null;
delete page.__svcSession;

/** A copy for each call: one piece of code cannot change what another reads. */
const get = async (): Promise<Session | null> => structuredClone(session);

define("Session", {
  /** The session, or null where the run has none. */
  get,
  /** The session's user, or null. */
  user: async () => (await get())?.user ?? null,
});
