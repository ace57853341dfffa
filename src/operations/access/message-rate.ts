/** Limits the rate of messages that clients send over WebSockets: per socket, per credential and per network address. */
import { setTimeout as delay } from "node:timers/promises";
import { createTokenBucket, type TokenBucket } from "../../engine/token-bucket.js";
import { SOCKET_MESSAGES_PER_SENDER, SOCKET_MESSAGES_PER_SOCKET } from "../../limits.js";

const MESSAGE_RATE_LIMITS = { socket: SOCKET_MESSAGES_PER_SOCKET, sender: SOCKET_MESSAGES_PER_SENDER };

export class SocketMessageRateLimiter {
  private readonly sockets = createTokenBucket(this.rates.socket);
  private readonly senders = createTokenBucket(this.rates.sender);

  /** @param wait waits for the passed number of seconds; tests pass a function that returns at once */
  constructor(
    private readonly rates = MESSAGE_RATE_LIMITS,
    private readonly wait = (waitSeconds: number): Promise<void> => delay(waitSeconds * 1_000),
  ) {}

  private async waitForTokens(bucket: TokenBucket, key: string, isOpen: () => boolean): Promise<void> {
    for (let waitSeconds = bucket.takeTokens(key); waitSeconds > 0 && isOpen(); waitSeconds = bucket.takeTokens(key))
      await this.wait(waitSeconds);
  }

  private async waitForBuckets(
    bucketKeys: readonly (readonly [TokenBucket, string])[],
    isOpen: () => boolean,
  ): Promise<void> {
    for (const [bucket, key] of bucketKeys) await this.waitForTokens(bucket, key, isOpen);
  }

  /**
   * Counts one message in the limits of its socket and of each key in `senderKeys` (the credential and the network address).
   * @returns null if the message can be handled now; otherwise a promise that resolves when it can be handled, or the socket has closed
   */
  countMessage(socket: string, senderKeys: readonly string[], isOpen: () => boolean): Promise<void> | null {
    const bucketKeys = [
      [this.sockets, socket] as const,
      ...senderKeys.map((sender) => [this.senders, sender] as const),
    ];
    const exceededIndex = bucketKeys.findIndex(([bucket, key]) => bucket.takeTokens(key) > 0);
    return exceededIndex === -1 ? null : this.waitForBuckets(bucketKeys.slice(exceededIndex), isOpen);
  }
}
