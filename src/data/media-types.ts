/** Types of an app's folders and files in responses. The server and the client library share them, so this file has no code. */

/** Folder in which an app stores files. */
export interface MediaFolder {
  id: number;
  name: string;
  /** ID of the parent folder; null for a folder at the top level. */
  parentId: number | null;
  userId: number | null;
  /** Time of creation in ISO 8601 format. */
  createdAt: string;
  updatedAt: string;
}

/** Uploaded file of an app. */
export interface MediaFile {
  id: number;
  name: string;
  /** Media type, detected from the bytes and not from the name. */
  contentType: string;
  /** URL of the contents. Reading them needs a credential, unless the access rules allow everyone. */
  url: string;
  /** URL of a small picture of the file; null for a file that is not a picture. */
  thumbnail: string | null;
  /** Width and height in pixels as displayed; null if the file is not a picture or cannot be decoded. */
  size: [number, number] | null;
  bytes: number;
  /** SHA-256 in hexadecimal. */
  checksum: string;
  folderId: number | null;
  /** ID of the person with an account of the service who uploaded the file; null for app users, visitors and API tokens. */
  userId: number | null;
  /** Time of the upload in ISO 8601 format. */
  createdAt: string;
  updatedAt: string;
}
