/** Folders and files of an app as callers see them: one definition for the server and the client library. Only types. */

/** A folder of an app's files, as its callers see it. */
export interface MediaFolder {
  id: number;
  name: string;
  /** null: at the top. */
  parentId: number | null;
  userId: number | null;
  /** ISO 8601. */
  createdAt: string;
  updatedAt: string;
}

/** A file of an app, as its callers see it. */
export interface MediaFile {
  id: number;
  name: string;
  /** By its bytes, whatever its name says. */
  contentType: string;
  /** Where its contents are; who reads them there needs a credential, unless the access rules are for all. */
  url: string;
  /** Where a small picture of it is; null for what is no picture. */
  thumbnail: string | null;
  /** Width and height in pixels, as it is shown; null for what is no picture that can be shown. */
  size: [number, number] | null;
  bytes: number;
  /** SHA-256 in hexadecimal. */
  checksum: string;
  folderId: number | null;
  userId: number | null;
  /** ISO 8601. */
  createdAt: string;
  updatedAt: string;
}
