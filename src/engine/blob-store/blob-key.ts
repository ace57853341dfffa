/** What a blob's key may be, and what is thrown where there is none of it. Knows no store. */

const KEY = /^[0-9a-f]{32}$/;

export const isBlobKey = (name: string): boolean => KEY.test(name);

/** Nothing else becomes part of a path. */
export function checkBlobKey(key: string): string {
  if (isBlobKey(key)) return key;
  throw new Error("a blob's key must be 32 hexadecimal digits");
}

/** The bytes are not in the store, whatever the database says. */
export class BlobMissing extends Error {
  override readonly name = "BlobMissing";
}
