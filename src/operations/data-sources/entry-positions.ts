/**
 * Formats and parses positions, from which a subscription to entries can resume. A position contains the ID of the last processed change.
 * Callers that are not trusted, such as pages, get an encrypted position: plain IDs would reveal how many changes other callers make.
 */
import type { KeyRing } from "../../engine/key-ring.js";
import { ActionError } from "../../errors.js";
import { describeValue } from "../../rules/describe-value.js";
import { TextCipher } from "../records/sealed-texts.js";
import type { DataSourceKey } from "./entry-rows.js";

const POSITION_PURPOSE = "svc entry position 1";
/**
 * Must be shorter than CHANGE_RETENTION_PERIOD (entry-change-cleanup.ts). Otherwise, a subscriber with a valid position could get a `reset`
 * because later changes are no longer stored. This would reveal changes that the subscriber cannot see.
 */
const POSITION_VALIDITY_MS = 13 * 60_000;
const CHANGE_ID_DIGITS = 15;

export interface SubscriptionPosition {
  /** ID of the change after which to resume; null if the position has expired, or if its encryption key no longer exists. */
  changeId: number | null;
  /**
   * Key of the columns and entries that the subscriber could see at this position. Missing in positions of trusted callers, which see
   * everything, and in positions from older releases.
   */
  visibilityKey?: string;
}

/** Interval at which each subscriber gets a new position, so that its position does not expire while no entry changes. */
export const SUBSCRIPTION_POSITION_RENEWAL_INTERVAL_MS = 2 * 60_000;

const createCipherContext = ({ appId, id }: DataSourceKey): string => `${appId}:${id}`;

export class SubscriptionPositionCodec {
  private readonly cipher = new TextCipher({ ring: this.options.ring, purpose: POSITION_PURPOSE });

  constructor(private readonly options: { ring: KeyRing }) {}

  /** Returns a position as text: the change ID in plain text for trusted callers, otherwise encrypted. */
  formatPosition(
    source: DataSourceKey,
    { changeId, visibilityKey }: { changeId: number; visibilityKey: string },
    isTrusted: boolean,
  ): string {
    if (isTrusted) return String(changeId);
    const text = `${String(changeId).padStart(CHANGE_ID_DIGITS, "0")} ${Date.now()} ${visibilityKey}`;
    return this.cipher.seal(text, createCipherContext(source));
  }

  /** Parses `since`. Returns null if it is missing: the subscription then starts with the next change. @throws REQUEST_INVALID */
  parse(source: DataSourceKey, since: unknown, isTrusted: boolean): SubscriptionPosition | null {
    if (since === undefined || since === null) return null;
    if (typeof since === "string" && isTrusted && /^\d{1,15}$/.test(since)) return { changeId: Number(since) };
    if (typeof since !== "string" || !/^[\w-]{60,100}$/.test(since)) {
      const message =
        '"since" must be a position that an earlier subscription ' +
        `to this data source sent (got ${describeValue(since)})`;
      throw new ActionError("REQUEST_INVALID", message);
    }
    const [number, at, visibilityKey] = (this.cipher.unseal(since, createCipherContext(source)) ?? "").split(" ");
    const isValid = at !== undefined && Date.now() - Number(at) < POSITION_VALIDITY_MS;
    return { changeId: isValid ? Number(number) : null, ...(visibilityKey && { visibilityKey }) };
  }
}
