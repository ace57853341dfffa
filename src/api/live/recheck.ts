/**
 * Asks again who the sockets' tokens stand for: each token once for all its sockets, and few at a time, so that a thousand
 * sockets leave the database to others. Knows no protocol.
 */
import type { Credentials } from "../../operations/access/credentials.js";
import type { Caller } from "../../rules/access.js";

/** What is known of a socket's owner. */
export interface Held {
  token: string | null;
  caller: Caller | null;
}

const AT_ONCE = 4;

const hasLostApp = (before: Caller, now: Caller): boolean =>
  [...before.editorOf].some((appId) => !now.editorOf.has(appId));

export function createRecheck<Holder extends Held>(options: {
  credentials: Pick<Credentials, "resolve">;
  /** Told each holder whose token stands for nobody any more. */
  onLapsed: (holder: Holder) => void;
  /** Told each editor's who has lost an app: what was let through for it is not any more. */
  onLessened: (holder: Holder) => void;
}) {
  const { credentials, onLapsed, onLessened } = options;
  const holders = new Set<Holder>();
  let running = false;
  let again = false;

  async function settle(token: string, those: readonly Holder[]): Promise<void> {
    let caller: Caller | null;
    try {
      caller = await credentials.resolve(token);
    } catch {
      // While the database is out of reach what was true stays true: an outage must not end every socket.
      return;
    }
    for (const holder of those) {
      const before = holder.caller;
      holder.caller = caller;
      if (!caller) onLapsed(holder);
      else if (before && hasLostApp(before, caller)) onLessened(holder);
    }
  }

  async function round(those: Iterable<Holder>): Promise<void> {
    const byToken = Map.groupBy(those, ({ token }) => token ?? "").entries();
    const lane = async () => {
      for (const [token, its] of byToken) await settle(token, its);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
  }

  return {
    holders,

    /** Of one; false when its token stands for nobody. */
    async holds(holder: Holder): Promise<boolean> {
      await settle(holder.token ?? "", [holder]);
      return holder.caller !== null;
    },

    /** Of those with this credential. */
    ofCredential: (id: number) => round([...holders].filter(({ caller }) => caller?.credentialId === id)),

    /** Of all. Asked for while it is under way, it starts over afterwards. */
    async all(): Promise<void> {
      again = true;
      if (running) return;
      running = true;
      while (again) {
        again = false;
        await round(holders);
      }
      running = false;
    },
  };
}
