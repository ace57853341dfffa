/** Random UUIDs for pages with and without HTTPS. Browsers offer `crypto.randomUUID` only to pages with HTTPS. */

/** Start and end of the five groups of a UUID in its 32 hexadecimal digits. */
const UUID_GROUP_RANGES = [
  [0, 8],
  [8, 12],
  [12, 16],
  [16, 20],
  [20, 32],
] as const;

/** Returns a random UUID, version 4. */
export function createRandomUuid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = 0x40 + (bytes[6]! % 16);
  bytes[8] = 0x80 + (bytes[8]! % 64);
  const digits = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return UUID_GROUP_RANGES.map(([start, end]) => digits.slice(start, end)).join("-");
}
