/**
 * Creates and checks signed URLs with which clients without a credential can read a file. A signed URL expires. The
 * service does not store it: the URL contains the expiry time and a signature.
 */
import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import type { KeyRing } from "../../engine/key-ring.js";
import { parseLinkSeconds } from "../../rules/media-fields.js";
import type { AdmittedRequest } from "../access/gate.js";
import type { Files } from "./files.js";
import type { MediaCallers } from "./media-callers.js";
import { contentsUrl } from "./media-rows.js";

/** Name from which the signing key is derived, so that the key differs from keys for other purposes. */
const LINK_PURPOSE = "svc media link 1";

export interface MediaLink {
  url: string;
  /** ISO 8601. */
  expiresAt: string;
}

/** Query parameters of a signed URL. */
export interface LinkClaim {
  /** Expiry as Unix time in seconds. */
  expires: string;
  signature: string;
}

export type MediaLinks = ReturnType<typeof createLinks>;

export function createLinks(options: { ring: KeyRing; callers: MediaCallers; files: Files; baseUrl: string }) {
  const { ring, callers, files, baseUrl } = options;

  function signLink(master: Buffer, appId: number, id: number, expires: string): Buffer {
    const key = Buffer.from(hkdfSync("sha256", master, "", LINK_PURPOSE, 32));
    return createHmac("sha256", key).update(`${appId}/${id}/${expires}`).digest();
  }

  return {
    /** Creates a signed URL of a file. @throws FILE_NOT_FOUND, REQUEST_INVALID */
    async create(admission: AdmittedRequest, appId: number, id: number, expiresIn: unknown): Promise<MediaLink> {
      const grants = await callers.grantsFor(admission);
      grants.requireRight((await files.findOrThrow(grants, appId, id)).rules, "read");
      const expires = Math.floor(Date.now() / 1000) + parseLinkSeconds(expiresIn);
      const signature = signLink(ring.current(), appId, id, String(expires)).toString("base64url");
      const url = `${contentsUrl(baseUrl, appId, id)}?expires=${expires}&signature=${signature}`;
      return { url, expiresAt: new Date(expires * 1000).toISOString() };
    },

    /** True if the URL has not expired, and was signed with a key that the service still has. */
    isValid(appId: number, id: number, { expires, signature }: LinkClaim): boolean {
      if (!/^\d{10}$/.test(expires) || !/^[\w-]{43}$/.test(signature)) return false;
      if (Number(expires) * 1000 <= Date.now()) return false;
      const input = Buffer.from(signature, "base64url");
      return ring.find((master) => timingSafeEqual(signLink(master, appId, id, expires), input)) !== null;
    },
  };
}
