/** Opens the content of a media file for a response: all bytes, a range of bytes, the thumbnail, or a converted picture. */
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { BlobMissingError, type BlobStore, type ByteRange } from "../../engine/blob-store/blob.js";
import type { PictureFormat } from "../../engine/pictures.js";
import { ActionError } from "../../errors.js";
import { grantsMediaRight } from "../../rules/media-access.js";
import type { MediaFileVariant } from "../../rules/media-fields.js";
import type { AdmittedRequest } from "../access/access-checks.js";
import type { MediaFiles } from "./files.js";
import type { SignedMediaUrls, SignedUrlParameters } from "./links.js";
import type { MediaRightsResolver } from "./media-callers.js";
import type { MediaPictures } from "./media-pictures.js";
import type { FileRow } from "./media-rows.js";

export interface MediaContents {
  name: string;
  contentType: string;
  /** Number of bytes of the content; null if the number is unknown before the content is opened. */
  bytes: number | null;
  /** Strong entity tag (ETag) of the content, including the quotes. */
  tag: string;
  /** True if everyone can read the content, so that shared caches may store it. */
  isPublic: boolean;
  isDecodablePicture: boolean;
  /**
   * Opens the content for reading. Without `range`, all bytes are read.
   * @throws ActionError FILE_NOT_FOUND if the media store does not contain the bytes, REQUEST_INVALID, OVERLOADED
   */
  open(range?: ByteRange): Promise<Readable>;
}

/** Content types whose pictures keep their format at a conversion. Other pictures become WebP, unless the request names a format. */
const FORMAT_BY_CONTENT_TYPE: Readonly<Record<string, PictureFormat>> = {
  "image/jpeg": "jpeg",
  "image/png": "png",
  "image/webp": "webp",
  "image/avif": "avif",
};

const createEntityTag = (...parts: (string | number | null)[]): string =>
  `"${createHash("sha256").update(parts.join("/")).digest("base64url")}"`;

interface MediaContentOpenerOptions {
  store: BlobStore;
  mediaRights: MediaRightsResolver;
  files: MediaFiles;
  links: SignedMediaUrls;
  pictures: MediaPictures;
}

export class MediaContentOpener {
  constructor(private readonly options: MediaContentOpenerOptions) {}

  private async readBlob(key: string, range?: ByteRange): Promise<Readable> {
    return this.options.store.read(key, range).catch((error: unknown) => {
      if (error instanceof BlobMissingError)
        throw new ActionError(
          "FILE_NOT_FOUND",
          "the content of this file is missing in the media store; upload the file again",
        );
      throw error;
    });
  }

  private resizePicture(
    appId: number,
    row: FileRow,
    { width, format, quality }: Extract<MediaFileVariant, { kind: "resized" }>,
  ) {
    if (row.width === null)
      throw new ActionError(
        "REQUEST_INVALID",
        "this file is not a picture that the service can convert; request it without width, format and quality",
      );
    const chosenFormat = format ?? FORMAT_BY_CONTENT_TYPE[row.contentType] ?? "webp";
    const resizeOptions = { width, format: chosenFormat, quality };
    const tag = createEntityTag(row.checksum, width, chosenFormat, quality);
    const openContent = async () => {
      const key = `${row.blobKey} ${tag}`;
      return Readable.from([
        await this.options.pictures.resize(
          appId,
          key,
          () => this.readBlob(row.blobKey),
          row.contentType,
          resizeOptions,
        ),
      ]);
    };
    return { contentType: `image/${chosenFormat}`, bytes: null, tag, open: openContent };
  }

  private selectContents(appId: number, row: FileRow, variant: MediaFileVariant) {
    if (variant.kind === "resized") return this.resizePicture(appId, row, variant);
    if (variant.kind === "whole") {
      const { contentType, bytes, checksum, blobKey } = row;
      return { contentType, bytes, tag: `"${checksum}"`, open: (range?: ByteRange) => this.readBlob(blobKey, range) };
    }
    const { thumbnailKey } = row;
    if (thumbnailKey === null)
      throw new ActionError(
        "FILE_NOT_FOUND",
        "this file has no thumbnail, because it is not a picture that the service can decode",
      );
    return {
      contentType: "image/webp",
      bytes: null,
      tag: createEntityTag(row.checksum, "thumbnail"),
      open: () => this.readBlob(thumbnailKey),
    };
  }

  /**
   * Returns the content of a file in the requested variant. With a valid signed URL (`link`), the caller needs no right to read the file.
   * @throws UNAUTHORIZED, FORBIDDEN, FILE_NOT_FOUND, REQUEST_INVALID
   */
  async openContents(
    admission: AdmittedRequest,
    appId: number,
    id: number,
    variant: MediaFileVariant,
    link: SignedUrlParameters | null,
  ): Promise<MediaContents> {
    const { mediaRights, files, links } = this.options;
    const grants = await mediaRights.resolveAccess(admission);
    const row = await files.findOrThrow(grants, appId, id);
    const isLinked = link !== null && links.isValid(appId, row, link);
    if (!isLinked) grants.requireRight(row.rules, "read");
    const isPublic = grantsMediaRight(row.rules, "read", null);
    return {
      name: row.name,
      isPublic,
      isDecodablePicture: row.width !== null,
      ...this.selectContents(appId, row, variant),
    };
  }
}
