/** Hook for a folder of the app's media: its files and folders, the functions that change them, and the current uploads. */
import { keepPreviousData } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import {
  CreateMediaFolder,
  DeleteMediaFile,
  DeleteMediaFolder,
  LinkMediaFile,
  ListMedia,
  MoveMediaFile,
  MoveMediaFolder,
  RenameMediaFile,
  RenameMediaFolder,
} from "../documents.js";
import { type Api, asApiError, refusalText } from "../shared/api.js";
import type { MediaListing } from "../shared/model.js";
import { queryOf, useResource } from "../shared/use-resource.js";

/** A file of the listing, or a folder. */
export interface MediaItem {
  kind: "file" | "folder";
  id: number;
}

export interface PendingUpload {
  key: number;
  name: string;
  /** Sent part of the file, from 0 to 1. */
  part: number;
  /** Reason why the upload was refused; null while it is in progress. */
  fault: string | null;
  /** Cancels the upload, or removes a failed upload from the list. */
  cancelUpload(): void;
}

export interface MediaState {
  /** The listed folder; null while it is loaded for the first time. */
  listing: MediaListing | null;
  fault: string | null;
  sending: PendingUpload[];
  send(files: readonly File[]): void;
  createFolder(name: string): Promise<string | null>;
  /** `rename`, `move` and `remove` return the error message if the service rejects the change, otherwise null. */
  rename(item: MediaItem, name: string): Promise<string | null>;
  move(item: MediaItem, folderId: number | null): Promise<string | null>;
  remove(item: MediaItem): Promise<string | null>;
  /** Returns a link that anyone can read the file with, for a day. @throws ApiError */
  link(fileId: number): Promise<string>;
}

let keys = 0;

/** @param search part of a name, which is searched in all folders of the app; "" lists the folder */
export function useMedia(api: Api, appId: number, folderId: number | null, search: string): MediaState {
  const { value, fault, reload } = useResource({
    ...queryOf(ListMedia, { appId, folderId: search ? null : folderId, name: search || null }),
    placeholderData: keepPreviousData,
    // A link can open a file that an earlier listing does not contain.
    gcTime: 0,
  });
  const listing = value?.media ?? null;
  const [sending, setSending] = useState<PendingUpload[]>([]);

  const write = useCallback(
    async (written: Promise<unknown>) => {
      try {
        await written;
        await reload();
        return null;
      } catch (error) {
        return refusalText(error, reload);
      }
    },
    [reload],
  );

  const sendOne = useCallback(
    async (file: File) => {
      keys += 1;
      const key = keys;
      const breaker = new AbortController();
      const removeUpload = () => setSending((all) => all.filter((pendingUpload) => pendingUpload.key !== key));
      const change = (part: Partial<PendingUpload>) =>
        setSending((all) =>
          all.map((pendingUpload) => (pendingUpload.key === key ? { ...pendingUpload, ...part } : pendingUpload)),
        );
      const cancelUpload = () => {
        breaker.abort();
        removeUpload();
      };
      setSending((all) => [...all, { key, name: file.name, part: 0, fault: null, cancelUpload }]);
      const form = new FormData();
      form.append("file", file, file.name);
      const path = `/v1/apps/${appId}/media/files${folderId === null ? "" : `?folderId=${folderId}`}`;
      try {
        await api.upload(path, form, (part) => change({ part }), breaker.signal);
        removeUpload();
        await reload();
      } catch (error) {
        change({ fault: asApiError(error).message });
      }
    },
    [api, appId, folderId, reload],
  );

  const send = useCallback(
    async (files: readonly File[]) => {
      // Uploads one file after the other, because browsers open few connections and the page needs some of them.
      for (const file of files) await sendOne(file);
    },
    [sendOne],
  );

  /** Returns the GraphQL variables with the item's ID and its listed change time. The service rejects the change of a newer item. */
  const variablesOf = ({ kind, id }: MediaItem) => {
    const mediaItem = (kind === "file" ? listing?.files : [...(listing?.folders ?? []), listing?.folder])?.find(
      (item) => item?.id === id,
    );
    return { appId, id, ifUpdatedAt: mediaItem!.updatedAt };
  };
  return {
    listing,
    fault,
    sending,
    send: (files) => void send(files),
    createFolder: (name) => write(api.request(CreateMediaFolder, { appId, name, parentId: folderId })),
    rename: (item, name) =>
      write(
        item.kind === "file"
          ? api.request(RenameMediaFile, { ...variablesOf(item), name })
          : api.request(RenameMediaFolder, { ...variablesOf(item), name }),
      ),
    move: (item, to) =>
      write(
        item.kind === "file"
          ? api.request(MoveMediaFile, { ...variablesOf(item), folderId: to })
          : api.request(MoveMediaFolder, { ...variablesOf(item), parentId: to }),
      ),
    remove: (item) =>
      write(
        item.kind === "file"
          ? api.request(DeleteMediaFile, variablesOf(item))
          : api.request(DeleteMediaFolder, variablesOf(item)),
      ),
    link: async (id) => (await api.request(LinkMediaFile, { appId, id })).link.url,
  };
}
