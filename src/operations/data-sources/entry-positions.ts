/**
 * Writes and reads the positions at which subscriptions to entries resume. A trusted caller gets the number of the change. Other callers
 * get it encrypted, with the time, because plain numbers would reveal how many changes others make.
 */
import type { KeyRing } from "../../engine/key-ring.js";
import { ActionError } from "../../errors.js";
import { describeValue } from "../../rules/described.js";
import { createSealedTexts } from "../records/sealed-texts.js";
import type { DataSourceKey } from "./entry-rows.js";

const POSITION_PURPOSE = "svc entry position 1";
/**
 * Time for which a position is valid. It is shorter than changes are stored (change-upkeep.ts), so that only time decides whether an
 * encrypted position is too old.
 */
const SEALED_VALID_MS = 13 * 60_000;
const NUMBER_DIGITS = 15;

/** Position from which a caller resumes. `number` is null if the position is too old, or if its key is gone. */
export interface Position {
  number: number | null;
}

/** Interval at which the feed sends each subscriber a new position, so that a subscriber that sees no changes can still resume. */
export const POSITION_EVERY_MS = 2 * 60_000;

export type EntryPositions = ReturnType<typeof createEntryPositions>;

export function createEntryPositions({ ring }: { ring: KeyRing }) {
  const sealedTexts = createSealedTexts({ ring, purpose: POSITION_PURPOSE });
  const boundTo = ({ appId, id }: DataSourceKey): string => `${appId}:${id}`;

  return {
    /** Returns the text of a position. */
    textOf(source: DataSourceKey, number: number, isTrusted: boolean): string {
      if (isTrusted) return String(number);
      const text = `${String(number).padStart(NUMBER_DIGITS, "0")} ${Date.now()}`;
      return sealedTexts.seal(text, boundTo(source));
    },

    /** Parses a position. @returns null if the caller starts from now @throws ActionError REQUEST_INVALID */
    parse(source: DataSourceKey, since: unknown, isTrusted: boolean): Position | null {
      if (since === undefined || since === null) return null;
      if (typeof since === "string" && isTrusted && /^\d{1,15}$/.test(since)) return { number: Number(since) };
      if (typeof since !== "string" || !/^[\w-]{60,100}$/.test(since)) {
        const message = `since must be a position of this subscription (got ${describeValue(since)})`;
        throw new ActionError("REQUEST_INVALID", message);
      }
      const [number, at] = (sealedTexts.unseal(since, boundTo(source)) ?? "").split(" ");
      const isValid = at !== undefined && Date.now() - Number(at) < SEALED_VALID_MS;
      return { number: isValid ? Number(number) : null };
    },
  };
}
