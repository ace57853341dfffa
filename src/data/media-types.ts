/** Types of media folders and files in responses. The server and the client library share this file, so it must not contain code. */

/** Folder in which an app stores files. */
export interface MediaFolder {
  id: number;
  name: string;
  /** Null for a folder at the top level. */
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
  /** Media type, detected from the bytes of the file and not from its name. */
  contentType: string;
  /** URL of the content. A request needs a credential or a signature, unless the access rules allow everyone to read the file. */
  url: string;
  /** URL of a small version of the picture; null if the file has none. */
  thumbnail: string | null;
  /** Width and height in pixels as displayed; null if the file is not a picture that the service can decode. */
  size: [number, number] | null;
  bytes: number;
  /** SHA-256 in hexadecimal. */
  checksum: string;
  folderId: number | null;
  /** ID of the person with an account who uploaded the file; null if the uploader has no account. */
  userId: number | null;
  /** Time of the upload in ISO 8601 format. */
  createdAt: string;
  updatedAt: string;
}
