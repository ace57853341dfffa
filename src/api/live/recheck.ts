/**
 * Checks the tokens of open websockets again when credentials change, each token once for all its websockets. Only a few tokens are checked
 * at a time, so that a thousand websockets do not occupy the database. Other files close the websockets.
 */
import { runInBackground } from "../../background.js";
import type { Credentials } from "../../operations/access/credentials.js";
import type { Caller } from "../../rules/access.js";

export interface SocketWithToken {
  token: string | null;
  caller: Caller | null;
}

const CONCURRENT_CHECKS_MAX = 4;
/**
 * Delay in milliseconds before a second check. It is needed if a credential has expired by this machine's clock, but not by the database's.
 */
const SECOND_CHECK_DELAY_MS = 200;
/** Longest possible delay of a Node timer, in milliseconds. A token that expires later gets no timer. */
const TIMER_MAX_MS = 2 ** 31 - 1;

interface CredentialRecheckOptions<Socket extends SocketWithToken> {
  credentials: Pick<Credentials, "resolve">;
  /** Called after the token of a websocket was checked. If the token is revoked or has expired, the websocket's `caller` is null. */
  onChecked: (socket: Socket) => void;
}

export class CredentialRecheck<Socket extends SocketWithToken> {
  /** Open websockets, each with the timer for the expiry of its token. */
  private readonly sockets = new Map<Socket, NodeJS.Timeout | undefined>();
  private isRunning = false;
  private shouldRunAgain = false;

  constructor(private readonly options: CredentialRecheckOptions<Socket>) {}

  private async updateSockets(token: string, sockets: readonly Socket[]): Promise<void> {
    const { credentials, onChecked } = this.options;
    let caller: Caller | null;
    try {
      caller = await credentials.resolve(token);
    } catch {
      // The database is unavailable. The earlier result stays valid, because an outage must not close every websocket.
      return;
    }
    for (const socket of sockets) {
      // A timer may fire a millisecond early. If the credential has not expired yet, the timer is set again.
      const remainingMs = (caller?.expiresAt ?? 0) - Date.now();
      const needsTimer = socket.caller?.expiresAt !== caller?.expiresAt || remainingMs <= SECOND_CHECK_DELAY_MS;
      socket.caller = caller;
      if (caller && needsTimer && this.sockets.has(socket)) this.add(socket);
      onChecked(socket);
    }
  }

  private async recheckSockets(sockets: Iterable<Socket>): Promise<void> {
    const socketsByToken = Map.groupBy(sockets, ({ token }) => token ?? "").entries();
    const recheckNextTokens = async () => {
      for (const [token, socketsWithToken] of socketsByToken) await this.updateSockets(token, socketsWithToken);
    };
    await Promise.all(Array.from({ length: CONCURRENT_CHECKS_MAX }, recheckNextTokens));
  }

  /** Adds a websocket. Its token is checked whenever credentials change, until `remove` is called. */
  add(socket: Socket): void {
    // A timer checks the token at its expiry, because the service sends no notification when a token expires.
    clearTimeout(this.sockets.get(socket));
    const expiresAt = socket.caller?.expiresAt ?? Number.POSITIVE_INFINITY;
    const remainingMs = Math.max(expiresAt - Date.now(), SECOND_CHECK_DELAY_MS);
    const timer =
      remainingMs > TIMER_MAX_MS
        ? undefined
        : setTimeout(() => runInBackground(this.updateSockets(socket.token ?? "", [socket])), remainingMs);
    this.sockets.set(socket, timer?.unref());
  }

  remove(socket: Socket): void {
    clearTimeout(this.sockets.get(socket));
    this.sockets.delete(socket);
  }

  /** Checks the token of one websocket. Returns false if it is not valid. Without the database, returns the result of the last check. */
  async checkSocket(socket: Socket): Promise<boolean> {
    await this.updateSockets(socket.token ?? "", [socket]);
    return socket.caller !== null;
  }

  /** Checks the tokens of all websockets that use this credential. */
  checkCredential(id: number) {
    return this.recheckSockets([...this.sockets.keys()].filter(({ caller }) => caller?.credentialId === id));
  }

  /** Checks the tokens of all websockets. A call during a check starts another check when the first one finishes. */
  async checkAll(): Promise<void> {
    this.shouldRunAgain = true;
    if (this.isRunning) return;
    this.isRunning = true;
    while (this.shouldRunAgain) {
      this.shouldRunAgain = false;
      await this.recheckSockets(this.sockets.keys());
    }
    this.isRunning = false;
  }
}
