/**
 * Checks the tokens of open sockets again after credentials have changed. Each token is checked once for all its sockets, and few at a
 * time, so that a thousand sockets do not occupy the database. The caller closes sockets.
 */
import { runInBackground } from "../../background.js";
import type { Credentials } from "../../operations/access/credentials.js";
import type { Caller } from "../../rules/access.js";

/** The credential of a socket, and its caller. */
export interface HeldConnection {
  token: string | null;
  caller: Caller | null;
}

const CHECKS_AT_ONCE = 4;
/** Delay before a credential is checked again that has expired by this machine's clock but not yet by the database's clock. */
const CLOCKS_APART_MS = 200;
/** Maximum delay of a Node timer in milliseconds. For later times, a timer is set again after each check. */
const TIMER_MAX_MS = 2 ** 31 - 1;

export function createRecheck<Holder extends HeldConnection>(options: {
  credentials: Pick<Credentials, "resolve">;
  /** Called for each holder whose token has been resolved again: `caller` is null if the token is revoked or has expired. */
  onResolved: (holder: Holder) => void;
}) {
  const { credentials, onResolved } = options;
  /** Holders with the timer for the expiry of each credential. */
  const holders = new Map<Holder, NodeJS.Timeout | undefined>();
  let isRunning = false;
  let runsAgain = false;

  /** Sets a timer for the expiry, because no notification is sent when a credential expires. */
  function watchExpiry(holder: Holder): void {
    clearTimeout(holders.get(holder));
    const expiresAt = holder.caller?.expiresAt ?? Number.POSITIVE_INFINITY;
    const remainingMs = Math.max(expiresAt - Date.now(), CLOCKS_APART_MS);
    const timer =
      remainingMs > TIMER_MAX_MS
        ? undefined
        : setTimeout(() => runInBackground(settleHolders(holder.token ?? "", [holder])), remainingMs);
    holders.set(holder, timer?.unref());
  }

  async function settleHolders(token: string, those: readonly Holder[]): Promise<void> {
    let caller: Caller | null;
    try {
      caller = await credentials.resolve(token);
    } catch {
      // If the database is not available, the earlier result stays valid, because an outage must not end every socket.
      return;
    }
    for (const holder of those) {
      // A timer may fire a millisecond early, so a credential that is about to expire gets another timer.
      const remainingMs = (caller?.expiresAt ?? 0) - Date.now();
      const isDue = holder.caller?.expiresAt !== caller?.expiresAt || remainingMs <= CLOCKS_APART_MS;
      holder.caller = caller;
      if (caller && isDue && holders.has(holder)) watchExpiry(holder);
      onResolved(holder);
    }
  }

  async function recheckRound(those: Iterable<Holder>): Promise<void> {
    const byToken = Map.groupBy(those, ({ token }) => token ?? "").entries();
    const recheckLane = async () => {
      for (const [token, holdersOfToken] of byToken) await settleHolders(token, holdersOfToken);
    };
    await Promise.all(Array.from({ length: CHECKS_AT_ONCE }, recheckLane));
  }

  return {
    /** Adds a holder. Its token is checked whenever credentials change, until `remove`. */
    add: watchExpiry,

    remove(holder: Holder): void {
      clearTimeout(holders.get(holder));
      holders.delete(holder);
    },

    /** Checks one holder's token. Returns false if it is revoked or has expired. */
    async holds(holder: Holder): Promise<boolean> {
      await settleHolders(holder.token ?? "", [holder]);
      return holder.caller !== null;
    },

    /** Checks the tokens of the holders with this credential. */
    ofCredential: (id: number) => recheckRound([...holders.keys()].filter(({ caller }) => caller?.credentialId === id)),

    /** Checks the tokens of all holders. A request during a round starts another one when the round finishes. */
    async all(): Promise<void> {
      runsAgain = true;
      if (isRunning) return;
      isRunning = true;
      while (runsAgain) {
        runsAgain = false;
        await recheckRound(holders.keys());
      }
      isRunning = false;
    },
  };
}
