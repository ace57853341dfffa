/**
 * Creates and checks signed URLs, with which clients without a credential can read one file until the URL expires. The service does not
 * store these URLs: each one contains its expiry time and a signature.
 */
import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import type { KeyRing } from "../../engine/key-ring.js";
import { MEDIA_LINK_LIFETIME_MAX_SECONDS, parseMediaLinkLifetimeSeconds } from "../../rules/media-fields.js";
import type { AdmittedRequest } from "../access/access-checks.js";
import type { MediaFiles } from "./files.js";
import type { MediaRightsResolver } from "./media-callers.js";
import { createFileContentUrl, type FileRow } from "./media-rows.js";

/** Label for deriving the signing key. Each purpose has another label, and therefore another key. */
const LINK_KEY_PURPOSE = "svc media link 1";

export interface ExpiringMediaUrl {
  url: string;
  /** Time at which the URL expires, as ISO 8601 text. */
  expiresAt: string;
}

/** Query parameters of a signed URL. */
export interface SignedUrlParameters {
  /** Time at which the URL expires, as Unix time in seconds. */
  expires: string;
  signature: string;
}

interface SignedMediaUrlsOptions {
  ring: KeyRing;
  mediaRights: MediaRightsResolver;
  files: MediaFiles;
  baseUrl: string;
}

/** Identifies the file of a signed URL. The ID alone does not: after a restore from a backup, another file can get the same ID. */
type LinkedFile = Pick<FileRow, "id" | "createdAt">;

function signText(masterKey: Buffer, text: string): Buffer {
  const key = Buffer.from(hkdfSync("sha256", masterKey, "", LINK_KEY_PURPOSE, 32));
  return createHmac("sha256", key).update(text).digest();
}

const createLinkText = (appId: number, { id, createdAt }: LinkedFile, expires: string): string =>
  `${appId}/${id}/${expires}/${createdAt.getTime()}`;

/** Returns the text that release 0.1 signed, without the file's time of creation. */
const createOldLinkText = (appId: number, { id }: LinkedFile, expires: string): string => `${appId}/${id}/${expires}`;

/** True if a URL with this expiry time must have been signed after the file was created: URLs have a maximum lifetime. */
const isSignedAfterCreation = ({ createdAt }: LinkedFile, expires: string): boolean =>
  (Number(expires) - MEDIA_LINK_LIFETIME_MAX_SECONDS) * 1000 > createdAt.getTime();

export class SignedMediaUrls {
  constructor(private readonly options: SignedMediaUrlsOptions) {}

  /**
   * Creates a signed URL for reading a file. `expiresIn` is the URL's lifetime in seconds, not validated yet.
   * @throws UNAUTHORIZED, FORBIDDEN, FILE_NOT_FOUND, REQUEST_INVALID
   */
  async create(admission: AdmittedRequest, appId: number, id: number, expiresIn: unknown): Promise<ExpiringMediaUrl> {
    const { ring, mediaRights, files, baseUrl } = this.options;
    const grants = await mediaRights.resolveAccess(admission);
    const file = await files.findOrThrow(grants, appId, id);
    grants.requireRight(file.rules, "read");
    const expires = Math.floor(Date.now() / 1000) + parseMediaLinkLifetimeSeconds(expiresIn);
    const signature = signText(ring.getCurrentKey(), createLinkText(appId, file, String(expires))).toString(
      "base64url",
    );
    const url = `${createFileContentUrl(baseUrl, appId, id)}?expires=${expires}&signature=${signature}`;
    return { url, expiresAt: new Date(expires * 1000).toISOString() };
  }

  /** True if the URL has not expired, and the service has signed it for this file with a key that it still has. */
  isValid(appId: number, file: LinkedFile, { expires, signature }: SignedUrlParameters): boolean {
    if (!/^\d{10}$/.test(expires) || !/^[\w-]{43}$/.test(signature)) return false;
    if (Number(expires) * 1000 <= Date.now()) return false;
    const input = Buffer.from(signature, "base64url");
    const texts = [createLinkText(appId, file, expires)];
    if (isSignedAfterCreation(file, expires)) texts.push(createOldLinkText(appId, file, expires));
    const { ring } = this.options;
    return (
      ring.findKey((masterKey) => texts.some((text) => timingSafeEqual(signText(masterKey, text), input))) !== null
    );
  }
}
