/** Package `Svc.Media`: manages an app's folders and files by REST. It stores nothing. */

import type { MediaFile, MediaFolder } from "../../data/media-types.js";
import type { Media, MediaFiles, MediaFolders, MediaListing } from "../runtime/public-types.js";
import { encodeIdSegment, wrapRejections } from "./calls.js";
import { getConnection } from "./connection.js";
import { defineNamespace } from "./define.js";

/** Maximum number of files that the service returns in one page. */
const PAGE_LIMIT = 1_000;

const mediaPath = () => `/v1/apps/${getConnection().appId()}/media`;

const filePath = (id: number, verb = "") =>
  `${mediaPath()}/files/${encodeIdSegment(id, "FILE_NOT_FOUND", "a file's id")}${verb}`;
const folderPath = (id: number) => `${mediaPath()}/folders/${encodeIdSegment(id, "FOLDER_NOT_FOUND", "a folder's id")}`;

/** Returns the fields that are neither undefined nor null as a query string with a leading "?"; "" if there are none. */
function toQueryString(fields: Record<string, unknown>): string {
  const input = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
  return input.length === 0 ? "" : `?${new URLSearchParams(input.map(([name, value]) => [name, String(value)]))}`;
}

async function requestJson<Answer>(method: string, path: string, body?: unknown): Promise<Answer> {
  return (await getConnection().request(method, path, body)) as Answer;
}

const mediaFolders: MediaFolders = {
  get: ({ folderId } = {}) =>
    requestJson<MediaListing>("GET", mediaPath() + toQueryString({ folderId, limit: PAGE_LIMIT })),
  search: ({ name }) => requestJson<MediaListing>("GET", mediaPath() + toQueryString({ name, limit: PAGE_LIMIT })),
  async create(fields) {
    return (await requestJson<{ folder: MediaFolder }>("POST", `${mediaPath()}/folders`, fields)).folder;
  },
  async update(id, fields) {
    return (await requestJson<{ folder: MediaFolder }>("PUT", folderPath(id), fields)).folder;
  },
  async delete(id) {
    await requestJson("DELETE", folderPath(id));
  },
};

type UploadOptions = Parameters<MediaFiles["upload"]>[0];

/**
 * Returns a form that contains the file. The caller sends other fields in the URL, so that the order of the form's
 * parts does not matter.
 */
function createUploadForm({ file: input, data, name }: UploadOptions): FormData {
  if (data instanceof FormData) return data;
  if (!(input instanceof Blob))
    throw new TypeError(`Svc.Media.Files.upload: "file" must be a Blob, or "data" must be a FormData`);
  const form = new FormData();
  form.append("file", input, name ?? (input instanceof File ? input.name : "file"));
  return form;
}

const mediaFiles: MediaFiles = {
  async upload(options) {
    const { folderId, name } = options;
    const path = `${mediaPath()}/files${toQueryString({ folderId, name })}`;
    const answer = await getConnection().exchange("POST", path, createUploadForm(options));
    return ((await answer.json()) as { files: MediaFile[] }).files;
  },
  async get(id) {
    return (await requestJson<{ file: MediaFile }>("GET", filePath(id))).file;
  },
  async getAll() {
    const all: MediaFile[] = [];
    for (;;) {
      const path = `${mediaPath()}/files${toQueryString({ limit: PAGE_LIMIT, offset: all.length })}`;
      const page = await requestJson<{ files: MediaFile[]; pagination: { hasMore: boolean } }>("GET", path);
      all.push(...page.files);
      if (!page.pagination.hasMore || page.files.length === 0) return all;
    }
  },
  async getContents(id, { size, format, quality } = {}) {
    const answer = await getConnection().exchange(
      "GET",
      filePath(id, `/contents${toQueryString({ size, format, quality })}`),
    );
    return answer.blob();
  },
  async update(id, fields) {
    return (await requestJson<{ file: MediaFile }>("PUT", filePath(id), fields)).file;
  },
  async delete(id) {
    await requestJson("DELETE", filePath(id));
  },
  link: (id, { expiresIn } = {}) => requestJson("POST", filePath(id, "/link"), { expiresIn }),
};

defineNamespace("Media", {
  Folders: Object.freeze(wrapRejections(mediaFolders)),
  Files: Object.freeze(wrapRejections(mediaFiles)),
} satisfies Media);
