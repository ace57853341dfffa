/**
 * Checks the tokens of open websockets again when credentials change. Each token is checked once for all its
 * websockets. Only a few tokens are checked at a time, so that a thousand websockets do not occupy the database. Other
 * files close the websockets.
 */
import { runInBackground } from "../../background.js";
import type { Credentials } from "../../operations/access/credentials.js";
import type { Caller } from "../../rules/access.js";

/** Websocket whose token is checked again: the token, and the caller that it identified. */
export interface SocketWithToken {
  token: string | null;
  caller: Caller | null;
}

const CONCURRENT_CHECKS_MAX = 4;
/**
 * Delay in milliseconds before a credential is checked a second time. This is needed if the credential has expired by this machine's clock
 * but not yet by the database's clock.
 */
const CLOCK_DIFFERENCE_MS = 200;
/** Longest possible delay of a Node timer, in milliseconds. For a later time, each check sets the timer again. */
const TIMER_MAX_MS = 2 ** 31 - 1;

interface CredentialRecheckOptions<Holder extends SocketWithToken> {
  credentials: Pick<Credentials, "resolve">;
  /** Called after the token of a holder was checked: `caller` is null if the token is revoked or has expired. */
  onChecked: (holder: Holder) => void;
}

export class CredentialRecheck<Holder extends SocketWithToken> {
  /** Holders of a token, each with the timer for the expiry of its token. */
  private readonly holders = new Map<Holder, NodeJS.Timeout | undefined>();
  private isRunning = false;
  private runsAgain = false;

  constructor(private readonly options: CredentialRecheckOptions<Holder>) {}

  private async settleHolders(token: string, those: readonly Holder[]): Promise<void> {
    const { credentials, onChecked: onResolved } = this.options;
    let caller: Caller | null;
    try {
      caller = await credentials.resolve(token);
    } catch {
      // The database is unavailable. The earlier result stays valid, because an outage must not close every websocket.
      return;
    }
    for (const holder of those) {
      // A timer may fire a millisecond early. If the credential has not expired yet, the timer is set again.
      const remainingMs = (caller?.expiresAt ?? 0) - Date.now();
      const isDue = holder.caller?.expiresAt !== caller?.expiresAt || remainingMs <= CLOCK_DIFFERENCE_MS;
      holder.caller = caller;
      if (caller && isDue && this.holders.has(holder)) this.add(holder);
      onResolved(holder);
    }
  }

  private async recheckRound(those: Iterable<Holder>): Promise<void> {
    const byToken = Map.groupBy(those, ({ token }) => token ?? "").entries();
    const recheckLane = async () => {
      for (const [token, holdersOfToken] of byToken) await this.settleHolders(token, holdersOfToken);
    };
    await Promise.all(Array.from({ length: CONCURRENT_CHECKS_MAX }, recheckLane));
  }

  /** Adds a holder. Its token is checked whenever credentials change, until `remove` is called. */
  add(holder: Holder): void {
    // A timer checks the token when it expires, because an expiry sends no notification.
    clearTimeout(this.holders.get(holder));
    const expiresAt = holder.caller?.expiresAt ?? Number.POSITIVE_INFINITY;
    const remainingMs = Math.max(expiresAt - Date.now(), CLOCK_DIFFERENCE_MS);
    const timer =
      remainingMs > TIMER_MAX_MS
        ? undefined
        : setTimeout(() => runInBackground(this.settleHolders(holder.token ?? "", [holder])), remainingMs);
    this.holders.set(holder, timer?.unref());
  }

  remove(holder: Holder): void {
    clearTimeout(this.holders.get(holder));
    this.holders.delete(holder);
  }

  /** Checks the token of one holder. Returns false if it is revoked or has expired. */
  async checkHolder(holder: Holder): Promise<boolean> {
    await this.settleHolders(holder.token ?? "", [holder]);
    return holder.caller !== null;
  }

  /** Checks the tokens of all holders that use this credential. */
  checkCredential(id: number) {
    return this.recheckRound([...this.holders.keys()].filter(({ caller }) => caller?.credentialId === id));
  }

  /** Checks the tokens of all holders. A call during a check starts another check when the first one finishes. */
  async checkAll(): Promise<void> {
    this.runsAgain = true;
    if (this.isRunning) return;
    this.isRunning = true;
    while (this.runsAgain) {
      this.runsAgain = false;
      await this.recheckRound(this.holders.keys());
    }
    this.isRunning = false;
  }
}
