/** Creates the modules of the media feature and connects them. Does not start them. */
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import type { Config } from "../../config.js";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { openBlobStore } from "../../engine/blob-store.js";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import type { KeyRing } from "../../engine/key-ring.js";
import { PictureProcessor } from "../../engine/pictures.js";
import { UploadReceiver } from "../../engine/reception.js";
import { StartError } from "../../errors.js";
import type { ReadRows } from "../data-sources/read-pool.js";
import type { LogEventStore } from "../records/log-events.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import { MediaBlobs } from "./blobs.js";
import { MediaContentOpener } from "./contents.js";
import { MediaFiles } from "./files.js";
import { MediaFolders } from "./folders.js";
import { SignedMediaUrls } from "./links.js";
import { MediaRightsResolver, type ResolveAppUser } from "./media-callers.js";
import { MediaPictures } from "./media-pictures.js";
import { MediaRulesStore } from "./media-rules.js";
import { claimMediaStore, readMediaStoreId } from "./store-identity.js";
import { MediaSweep } from "./sweep.js";
import { Uploads } from "./uploads.js";

const MB = 2 ** 20;
/** Maximum uploads that this process receives at the same time. Further uploads wait, and waiting apps take turns. */
const CONCURRENT_UPLOADS_MAX = 4;
/** Maximum blobs that a request removes before its response. The next sweep (periodic cleanup) removes the remaining blobs. */
const BLOBS_PER_DELETION_MAX = 200;

export type Media = Awaited<ReturnType<typeof createMedia>>;

/** Opens the media store and creates the modules. @throws StartError if the media store cannot be opened */
export async function createMedia(options: {
  config: Config;
  db: Db;
  /** Reads rows over a separate pool of database connections, so that slow queries of callers do not delay other work (read-pool.ts). */
  read: ReadRows;
  ring: KeyRing;
  /** ID of this process of the service. */
  processId: string;
  receivedDataLimiter: ReceivedDataLimiter;
  logEvents: LogEventStore;
  findAppUser: ResolveAppUser;
  baseUrl: string;
  log: Logger;
}) {
  const { config, db, read, ring, processId, receivedDataLimiter, logEvents, findAppUser, baseUrl, log } = options;
  const folder = join(config.dataDir, "media");
  const [storeRow] = await rows<{ space: string }>(db, "SELECT space FROM media_store");
  const store = await openBlobStore({ folder, bucket: config.mediaBucket, space: storeRow!.space });
  const uploadReceiver = new UploadReceiver(
    join(folder, "incoming"),
    new FairSemaphore(CONCURRENT_UPLOADS_MAX, CONCURRENT_UPLOADS_MAX),
  );
  const pictures = new MediaPictures({ pictureProcessor: new PictureProcessor({ log }) });
  const blobs = new MediaBlobs({ db, quotaBytes: config.mediaQuotaMb * MB, log });
  const isOwnStore = async () => (await store.readStoreId()) === (await readMediaStoreId(db));
  const sweep = new MediaSweep({ db, store, uploadReceiver, blobs, isOwnStore, log });
  const mediaRights = new MediaRightsResolver({ db, findAppUser });

  /** Deletes up to BLOBS_PER_DELETION_MAX unused blobs from the media store now. The next sweep (periodic cleanup) deletes the others. */
  async function removeUnused(keys: readonly string[]): Promise<void> {
    for (const key of keys.slice(0, BLOBS_PER_DELETION_MAX)) {
      await sweep
        .removeBlob(key)
        .catch((error: unknown) =>
          log.warn(
            { err: error },
            "a deleted file could not be removed from the media store; the next cleanup tries again",
          ),
        );
    }
  }

  const markUnused = (executor: SqlClient, keys: readonly string[]) => blobs.markUnused(executor, keys);
  const sharedOptions = { db, read, mediaRights, receivedDataLimiter, baseUrl, markUnused, removeUnused };
  const folders = new MediaFolders(sharedOptions);
  const files = new MediaFiles({ ...sharedOptions, folders });
  const links = new SignedMediaUrls({ ring, mediaRights, files, baseUrl });
  const hasDiskSpace = async (bytes: number) => {
    if (config.diskFreeMinMb === 0) return true;
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize - bytes >= config.diskFreeMinMb * MB;
  };
  const parts = {
    store,
    uploadReceiver,
    blobs,
    pictures,
    mediaRights,
    folders,
    receivedDataLimiter,
    logEvents,
    baseUrl,
    hasDiskSpace,
    log,
  };
  return {
    folders,
    files,
    links,
    rules: new MediaRulesStore({ db, mediaRights, files, folders }),
    contents: new MediaContentOpener({ store, mediaRights, files, links, pictures }),
    uploads: new Uploads({ db, ...parts, maxFileBytes: config.mediaMaxMb * MB }),
    sweep,
    usage: (appId: number) => blobs.readUsedBytes(appId),

    /**
     * Checks that this process can receive and store files, and that its media store is the one that the database names (claimMediaStore).
     * If it is not, a process without the role `api` only logs a warning.
     * @throws StartError that names the store and its variable: MEDIA_URL or DATA_DIR
     */
    async start(): Promise<void> {
      const storeName = config.mediaBucket
        ? `the bucket ${config.mediaBucket.bucket} of MEDIA_URL`
        : `the folder ${folder} of DATA_DIR`;
      try {
        await uploadReceiver.start();
        await store.check();
      } catch (error) {
        throw new StartError(`${storeName} cannot be used: ${(error as Error).message || (error as Error).name}`, {
          cause: error,
        });
      }
      if (config.roles.has("api")) await claimMediaStore({ db, store, storeName, processId, log });
      else if (!(await isOwnStore()) && (await readMediaStoreId(db)) !== null)
        log.warn(
          { store: storeName },
          "this scheduler uses another media store than the API processes, " +
            "so it does not remove deleted files; give it the same DATA_DIR/media or MEDIA_URL",
        );
    },

    stop(): void {
      sweep.stop();
      pictures.stop();
      blobs.stop();
      store.stop();
    },
  };
}
