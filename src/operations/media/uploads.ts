/**
 * Receives uploads of files: reserves the app's quota, checks the bytes, and puts them into the media store. Then one transaction creates
 * all files of the request. If the upload fails, no file is created.
 */
import { createReadStream } from "node:fs";
import type { Logger } from "pino";
import type { EntityManager } from "typeorm";
import { type Db, rows } from "../../data/database.js";
import type { MediaFile } from "../../data/media-types.js";
import { type BlobStore, createBlobKey } from "../../engine/blob-store/blob.js";
import { detectContentType } from "../../engine/content-type.js";
import { mayKeyGetSlot } from "../../engine/fair-semaphore.js";
import { TYPES_WITH_REMOVABLE_METADATA } from "../../engine/pictures/private-metadata.js";
import { type ReceivedUpload, type UploadReceiver, UploadTooLargeError } from "../../engine/reception.js";
import { ActionError } from "../../errors.js";
import {
  FILES_PER_UPLOAD,
  LOW_DISK_RETRY_SECONDS,
  OVERLOADED_RETRY_SECONDS,
  PICTURE_MAX_BYTES,
  UPLOADS_IN_PROGRESS_MAX,
  VISITOR_UPLOADS_IN_PROGRESS_MAX,
} from "../../limits.js";
import { parseMediaName, toValidUploadName } from "../../rules/media-fields.js";
import type { AdmittedRequest } from "../access/access-checks.js";
import type { LogEventStore } from "../records/log-events.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import { transactWithAppLock } from "../settings/app-lock.js";
import type { MediaBlobs } from "./blobs.js";
import type { MediaFolders } from "./folders.js";
import { recordMediaChange } from "./media-audit.js";
import { type MediaAccess, type MediaRightsResolver, toLogEventCause } from "./media-callers.js";
import type { MediaPictures } from "./media-pictures.js";
import { findFile, toFile } from "./media-rows.js";

/** If a file is longer than expected, its reserved quota grows in steps of this many bytes. */
const QUOTA_STEP_BYTES = 4 * 1024 * 1024;

interface StoredUpload extends ReceivedUpload {
  key: string;
  name: string;
  contentType: string;
  pictureSize: [number, number] | null;
  thumbnail: { key: string; bytes: number } | null;
}

export interface MediaUploadInProgress {
  /**
   * Receives one file into the folder `folderId`; null for the top level.
   * @throws ActionError PAYLOAD_TOO_LARGE, REQUEST_INVALID, OVERLOADED, FOLDER_NOT_FOUND, UNAUTHORIZED, FORBIDDEN
   */
  receive(source: AsyncIterable<Buffer>, filename: string | undefined, folderId: number | null): Promise<void>;
  /** Creates all received files in one transaction. `name` replaces the file's name if exactly one file was received. */
  finish(fields: { folderId: number | null; name?: unknown }): Promise<MediaFile[]>;
  /**
   * Frees the slot, and deletes received bytes that did not become files. Call this function at the end of each upload, also after an
   * error.
   */
  close(): Promise<void>;
}

export interface MediaUploadsOptions {
  db: Db;
  store: BlobStore;
  uploadReceiver: UploadReceiver;
  blobs: MediaBlobs;
  pictures: MediaPictures;
  mediaRights: MediaRightsResolver;
  folders: MediaFolders;
  receivedDataLimiter: ReceivedDataLimiter;
  logEvents: LogEventStore;
  baseUrl: string;
  maxFileBytes: number;
  /** True if the disk that receives uploads has space for this number of additional bytes. */
  hasDiskSpace: (bytes: number) => Promise<boolean>;
  log: Logger;
}

const INSERT_FILE = `
  INSERT INTO media_file (app_id, folder_id, name, content_type, bytes, checksum, width, height, blob_key, thumbnail_key, user_id)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING id`;

/** Slots for concurrent uploads. One app can use at most half (rounded up) of the slots that other apps leave free. */
class UploadSlots {
  private readonly countsByApp = new Map<number, number>();
  private takenCount = 0;

  constructor(private readonly total: number) {}

  hasFreeSlot(appId: number): boolean {
    return mayKeyGetSlot(this.total, this.takenCount, this.countsByApp.get(appId) ?? 0);
  }

  changeUploadCount(appId: number, count: 1 | -1): void {
    const uploadCount = (this.countsByApp.get(appId) ?? 0) + count;
    this.takenCount += count;
    if (uploadCount > 0) this.countsByApp.set(appId, uploadCount);
    else this.countsByApp.delete(appId);
  }
}

const createOverloadedError = (message: string, retryAfter: number) =>
  new ActionError("OVERLOADED", message, { retryAfter });

async function* streamBytes(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

export class Uploads {
  private readonly openUploads = {
    all: new UploadSlots(UPLOADS_IN_PROGRESS_MAX),
    visitors: new UploadSlots(VISITOR_UPLOADS_IN_PROGRESS_MAX),
  };

  constructor(private readonly options: MediaUploadsOptions) {}

  /**
   * Yields the received bytes unchanged, and reserves more quota whenever they exceed the reserved bytes. Reserves at most the maximum size
   * of a file, above which `uploadReceiver` rejects the upload.
   */
  private async *reserveWhileReading(
    source: AsyncIterable<Buffer>,
    appId: number,
    key: string,
    reserved: number,
  ): AsyncGenerator<Buffer> {
    let reservedBytes = reserved;
    let receivedBytes = 0;
    for await (const chunk of source) {
      receivedBytes += chunk.length;
      const stepBytes = Math.min(QUOTA_STEP_BYTES, this.options.maxFileBytes - reservedBytes);
      if (receivedBytes > reservedBytes && stepBytes > 0) {
        await this.options.blobs.reserve(appId, key, stepBytes);
        reservedBytes += stepBytes;
      }
      yield chunk;
    }
  }

  private async receiveBytes(
    appId: number,
    key: string,
    source: AsyncIterable<Buffer>,
    expected: number,
  ): Promise<ReceivedUpload> {
    const { uploadReceiver, blobs, maxFileBytes: maxBytes, hasDiskSpace } = this.options;
    const reserved = Math.max(blobs.computeQuotaBytes(0), Math.min(expected, maxBytes));
    if (!(await hasDiskSpace(reserved)))
      throw createOverloadedError(
        "the service's disk is nearly full, so it accepts no uploads; try again later",
        LOW_DISK_RETRY_SECONDS,
      );
    await blobs.reserve(appId, key, reserved);
    return uploadReceiver
      .receive(key, this.reserveWhileReading(source, appId, key, reserved), maxBytes, appId)
      .catch((error: unknown) => {
        if (error instanceof UploadTooLargeError) {
          throw new ActionError("PAYLOAD_TOO_LARGE", `an uploaded file can have at most ${maxBytes / 2 ** 20} MB`);
        }
        if ((error as NodeJS.ErrnoException).code === "ENOSPC")
          throw createOverloadedError(
            "the service's disk is full, so it accepts no uploads; try again later",
            LOW_DISK_RETRY_SECONDS,
          );
        throw error;
      });
  }

  /** Removes a picture's metadata and creates its thumbnail. Adds the keys of new blobs to `keys`, also if it fails. */
  private async storePicture(appId: number, keys: string[], raw: ReceivedUpload, key: string, contentType: string) {
    const { store, pictures } = this.options;
    if (raw.bytes > PICTURE_MAX_BYTES) {
      throw new ActionError(
        "PAYLOAD_TOO_LARGE",
        `an uploaded picture can have at most ${PICTURE_MAX_BYTES / 2 ** 20} MB`,
      );
    }
    const cleanKey = createBlobKey();
    keys.push(cleanKey);
    const open = () => createReadStream(raw.path);
    const { size, thumbnail, storedCopy } = await pictures.inspect(appId, open, contentType, (clean) =>
      this.receiveBytes(appId, cleanKey, clean, raw.bytes),
    );
    await this.releaseReservation(appId, key);
    if (thumbnail === null) return { ...storedCopy, key: cleanKey, pictureSize: size, thumbnail: null };
    const thumbnailKey = createBlobKey();
    keys.push(thumbnailKey);
    const storedThumbnail = await this.receiveBytes(appId, thumbnailKey, streamBytes(thumbnail), thumbnail.length);
    await store.put(thumbnailKey, storedThumbnail.path);
    return {
      ...storedCopy,
      key: cleanKey,
      pictureSize: size,
      thumbnail: { key: thumbnailKey, bytes: storedThumbnail.bytes },
    };
  }

  /** Deletes the received bytes of a blob and frees its reserved quota, unless a file uses the blob. */
  private async releaseReservation(appId: number, key: string): Promise<void> {
    const { store, uploadReceiver, blobs } = this.options;
    await uploadReceiver.discard(key);
    await blobs.removeUnlessUsed(key, (blobKey) => store.remove(blobKey), appId);
  }

  private async insertFile(
    manager: EntityManager,
    admission: AdmittedRequest,
    appId: number,
    folderId: number | null,
    file: StoredUpload,
  ): Promise<MediaFile> {
    const { blobs, logEvents, baseUrl } = this.options;
    const { key, name, contentType, bytes, checksum, pictureSize, thumbnail } = file;
    await blobs.markUsed(manager, key, bytes);
    if (thumbnail) await blobs.markUsed(manager, thumbnail.key, thumbnail.bytes);
    const [width, height] = pictureSize ?? [null, null];
    const userId = admission.caller?.personId ?? null;
    const values = [
      appId,
      folderId,
      name,
      contentType,
      bytes,
      checksum,
      width,
      height,
      key,
      thumbnail?.key ?? null,
      userId,
    ];
    const [insertedFile] = await rows<{ id: number }>(manager, INSERT_FILE, values);
    const { id } = insertedFile!;
    const data = { fileId: id, name, contentType, bytes, folderId };
    await logEvents.emit(manager, toLogEventCause(admission), appId, { type: "mediaFile.create", data });
    await recordMediaChange(manager, admission, appId, "media.file.create", { fileId: id, name });
    return toFile((await findFile(manager, appId, id))!, appId, baseUrl);
  }

  /**
   * Takes an upload slot for the app; for a visitor, also one of the visitors' slots. Returns a function that frees these slots.
   * @throws OVERLOADED if no slot is free for this app
   */
  private acquireUploadSlot(appId: number, isTrusted: boolean): () => void {
    const slots = isTrusted ? [this.openUploads.all] : [this.openUploads.all, this.openUploads.visitors];
    if (!slots.every((slot) => slot.hasFreeSlot(appId))) {
      throw createOverloadedError(
        `too many uploads are running; try again in ${OVERLOADED_RETRY_SECONDS} s`,
        OVERLOADED_RETRY_SECONDS,
      );
    }
    for (const slot of slots) slot.changeUploadCount(appId, 1);
    return () => {
      for (const slot of slots) slot.changeUploadCount(appId, -1);
    };
  }

  private upload(
    admission: AdmittedRequest,
    appId: number,
    grants: MediaAccess,
    length: number | null,
    releaseSlots: () => void,
  ): MediaUploadInProgress {
    const { db, store, blobs, folders, log } = this.options;
    const files: StoredUpload[] = [];
    const keys: string[] = [];
    let isOpen = true;
    let expectedBytes = length ?? QUOTA_STEP_BYTES;

    const receiveFile: MediaUploadInProgress["receive"] = async (source, filename, folderId) => {
      if (files.length >= FILES_PER_UPLOAD)
        throw new ActionError(
          "REQUEST_INVALID",
          `one upload can contain at most ${FILES_PER_UPLOAD} files; no file was stored, so send all files again in several uploads`,
        );
      grants.requireRight(await folders.readRulesAt(grants, appId, folderId), "create");
      const key = createBlobKey();
      keys.push(key);
      const raw = await this.receiveBytes(appId, key, source, expectedBytes);
      if (length !== null) expectedBytes = Math.max(0, expectedBytes - raw.bytes);
      const contentType = await detectContentType(raw.head);
      const isPicture = TYPES_WITH_REMOVABLE_METADATA.includes(contentType);
      const storedUpload = isPicture
        ? await this.storePicture(appId, keys, raw, key, contentType)
        : { ...raw, key, pictureSize: null, thumbnail: null };
      await store.put(storedUpload.key, storedUpload.path);
      files.push({ ...storedUpload, name: toValidUploadName(filename), contentType });
    };

    return {
      receive: receiveFile,

      finish: async ({ folderId, name }) => {
        if (files.length === 0) throw new ActionError("REQUEST_INVALID", "the form must contain at least one file");
        const input = name === undefined || name === "" || files.length > 1 ? null : parseMediaName(name);
        const store = async (manager: EntityManager) => {
          grants.requireRight(await folders.readRulesAt(grants, appId, folderId, manager), "create");
          const storedFiles: MediaFile[] = [];
          for (const file of files)
            storedFiles.push(
              await this.insertFile(manager, admission, appId, folderId, { ...file, name: input ?? file.name }),
            );
          return storedFiles;
        };
        const insertedFiles = await transactWithAppLock(db, appId, store);
        for (const file of files) for (const key of [file.key, file.thumbnail?.key]) if (key) blobs.stopRenewing(key);
        keys.length = 0;
        return insertedFiles;
      },

      close: async () => {
        if (!isOpen) return;
        isOpen = false;
        releaseSlots();
        // If a blob cannot be deleted now, the periodic cleanup (sweep.ts) deletes it after the lease of the upload has expired.
        for (const key of keys) {
          blobs.stopRenewing(key);
          await this.releaseReservation(appId, key).catch((error: unknown) =>
            log.warn(
              { err: error },
              "bytes of a failed upload could not be removed from the media store; a later cleanup tries again",
            ),
          );
        }
      },
    };
  }

  /**
   * Starts an upload request. `length` is the value of Content-Length, an estimate of the size of the files; null if unknown.
   * @throws ActionError RATE_LIMIT_EXCEEDED, OVERLOADED
   */
  async beginUpload(admission: AdmittedRequest, appId: number, length: number | null): Promise<MediaUploadInProgress> {
    const { mediaRights, receivedDataLimiter } = this.options;
    const grants = await mediaRights.resolveAccess(admission);
    receivedDataLimiter.countRows(toLogEventCause(admission), appId, 0);
    return this.upload(admission, appId, grants, length, this.acquireUploadSlot(appId, grants.isTrusted));
  }
}
