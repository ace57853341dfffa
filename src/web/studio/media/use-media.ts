/** Hook for a folder of the app's media: its files and folders, the functions that change them, and the current uploads. */
import { keepPreviousData } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import {
  CreateMediaFileLink,
  CreateMediaFolder,
  DeleteMediaFile,
  DeleteMediaFolder,
  FindMediaFile,
  ListMedia,
  MoveMediaFile,
  MoveMediaFolder,
  RenameMediaFile,
  RenameMediaFolder,
} from "../documents.js";
import { type ApiClient, asApiError, handleRejectedChange } from "../shared/api.js";
import type { MediaListing } from "../shared/model.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";

export interface MediaItem {
  kind: "file" | "folder";
  id: number;
}

export interface PendingUpload {
  uploadKey: number;
  name: string;
  /** Fraction of the file that has been sent, from 0 to 1. */
  sentFraction: number;
  /** Error message of a failed upload; null while the upload is in progress. */
  fault: string | null;
  /** Cancels an upload in progress, or removes a failed upload from the list. */
  cancelUpload(): void;
}

export interface MediaState {
  /** Content of the open folder; null until it is loaded for the first time. */
  listing: MediaListing | null;
  fault: string | null;
  uploads: PendingUpload[];
  uploadFiles(files: readonly File[]): void;
  createFolder(name: string): Promise<string | null>;
  /**
   * Renames a file or folder. Like `moveItem` and `removeItem`, returns the service's error message, or null if the service has made the
   * change. The item must have been in a listing before.
   */
  renameItem(item: MediaItem, name: string): Promise<string | null>;
  moveItem(item: MediaItem, folderId: number | null): Promise<string | null>;
  removeItem(item: MediaItem): Promise<string | null>;
  /** Returns true if the service has no file or folder with this ID. @throws ApiError */
  isDeleted(item: MediaItem): Promise<boolean>;
  /** Creates a link with which anyone can read the file for one day. @throws ApiError */
  createLink(fileId: number): Promise<string>;
}

let lastUploadKey = 0;

/** True if the service answers this read of a file or folder with "not found". @throws ApiError for other errors */
async function isMissing(readRequest: Promise<unknown>): Promise<boolean> {
  try {
    await readRequest;
    return false;
  } catch (error) {
    if (asApiError(error).status.endsWith("_NOT_FOUND")) return true;
    throw error;
  }
}

/**
 * Hook that returns the time of the last change of each file and folder, as the service last sent it. Includes items that the current
 * listing does not contain.
 */
function useListedChangeTimes(listing: MediaListing | null): ReadonlyMap<string, string> {
  const [changeTimes] = useState(() => new Map<string, string>());
  for (const { id, updatedAt } of listing?.files ?? []) changeTimes.set(`file ${id}`, updatedAt);
  const folders = [...(listing?.folders ?? []), ...(listing?.folder ? [listing.folder] : [])];
  for (const { id, updatedAt } of folders) changeTimes.set(`folder ${id}`, updatedAt);
  return changeTimes;
}

/** @param search part of a name to find in all folders of the app; "" lists the open folder instead */
export function useMedia(api: ApiClient, appId: number, folderId: number | null, search: string): MediaState {
  const { value, fault, reload } = useResource({
    ...createQueryOptions(ListMedia, { appId, folderId: search ? null : folderId, name: search || null }),
    placeholderData: keepPreviousData,
    // Listings are not cached, because an outdated listing may lack the file that a link opens.
    gcTime: 0,
  });
  const listing = value?.media ?? null;
  const changeTimes = useListedChangeTimes(listing);
  const [uploads, setUploads] = useState<PendingUpload[]>([]);

  const runAndReload = useCallback(
    async (request: Promise<unknown>) => {
      try {
        await request;
        await reload();
        return null;
      } catch (error) {
        return handleRejectedChange(error, reload);
      }
    },
    [reload],
  );

  const uploadFile = useCallback(
    async (file: File) => {
      lastUploadKey += 1;
      const key = lastUploadKey;
      const abortController = new AbortController();
      const removeUpload = () =>
        setUploads((uploads) => uploads.filter((pendingUpload) => pendingUpload.uploadKey !== key));
      const changeUpload = (part: Partial<PendingUpload>) =>
        setUploads((uploads) =>
          uploads.map((pendingUpload) =>
            pendingUpload.uploadKey === key ? { ...pendingUpload, ...part } : pendingUpload,
          ),
        );
      const cancelUpload = () => {
        abortController.abort();
        removeUpload();
      };
      setUploads((uploads) => [
        ...uploads,
        { uploadKey: key, name: file.name, sentFraction: 0, fault: null, cancelUpload },
      ]);
      const form = new FormData();
      form.append("file", file, file.name);
      const path = `/v1/apps/${appId}/media/files${folderId === null ? "" : `?folderId=${folderId}`}`;
      try {
        await api.uploadFiles(path, form, (sentFraction) => changeUpload({ sentFraction }), abortController.signal);
        removeUpload();
        await reload();
      } catch (error) {
        changeUpload({ fault: asApiError(error).message });
      }
    },
    [api, appId, folderId, reload],
  );

  const uploadAll = useCallback(
    async (files: readonly File[]) => {
      // Uploads one file at a time, because browsers open only a few connections, which the page also needs for other requests.
      for (const file of files) await uploadFile(file);
    },
    [uploadFile],
  );

  /** Returns the variables that name the item in a change. The service rejects the change if the item has changed since `ifUpdatedAt`. */
  const createChangeVariables = ({ kind, id }: MediaItem) => ({
    appId,
    id,
    ifUpdatedAt: changeTimes.get(`${kind} ${id}`)!,
  });
  return {
    listing,
    fault,
    uploads,
    uploadFiles: (files) => void uploadAll(files),
    createFolder: (name) => runAndReload(api.request(CreateMediaFolder, { appId, name, parentId: folderId })),
    renameItem: (item, name) =>
      runAndReload(
        item.kind === "file"
          ? api.request(RenameMediaFile, { ...createChangeVariables(item), name })
          : api.request(RenameMediaFolder, { ...createChangeVariables(item), name }),
      ),
    moveItem: (item, to) =>
      runAndReload(
        item.kind === "file"
          ? api.request(MoveMediaFile, { ...createChangeVariables(item), folderId: to })
          : api.request(MoveMediaFolder, { ...createChangeVariables(item), parentId: to }),
      ),
    removeItem: (item) =>
      runAndReload(
        item.kind === "file"
          ? api.request(DeleteMediaFile, createChangeVariables(item))
          : api.request(DeleteMediaFolder, createChangeVariables(item)),
      ),
    isDeleted: ({ kind, id }) =>
      kind === "file"
        ? isMissing(api.request(FindMediaFile, { appId, id }))
        : isMissing(api.request(ListMedia, { appId, folderId: id, name: null })),
    createLink: async (id) => (await api.request(CreateMediaFileLink, { appId, id })).link.url,
  };
}
