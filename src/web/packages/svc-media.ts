/** Package `Svc.Media`: manages an app's folders and files by REST. This package caches nothing. */

import type { MediaFile, MediaFolder } from "../../data/media-types.js";
import type { Media, MediaFiles, MediaFolders, MediaListing } from "../runtime/public-types.js";
import { encodeIdPathSegment, wrapWithSvcErrors } from "./calls.js";
import { getConnection } from "./connection.js";
import { defineSvcNamespace } from "./define.js";

/** Maximum number of files that the service returns in one page. */
const PAGE_MAX_FILES = 1_000;

const getMediaPath = () => `/v1/apps/${getConnection().appId()}/media`;

const getFilePath = (id: number, suffix = "") =>
  `${getMediaPath()}/files/${encodeIdPathSegment(id, "FILE_NOT_FOUND", "a file's id")}${suffix}`;
const getFolderPath = (id: number) =>
  `${getMediaPath()}/folders/${encodeIdPathSegment(id, "FOLDER_NOT_FOUND", "a folder's id")}`;

/** Returns the fields that are neither undefined nor null as a query string with a leading "?"; "" if there are none. */
function toQueryString(fields: Record<string, unknown>): string {
  const parameters = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
  return parameters.length === 0
    ? ""
    : `?${new URLSearchParams(parameters.map(([name, value]) => [name, String(value)]))}`;
}

async function requestJson<Answer>(method: string, path: string, body?: unknown): Promise<Answer> {
  return (await getConnection().request(method, path, body)) as Answer;
}

const mediaFolders: MediaFolders = {
  get: ({ folderId } = {}) =>
    requestJson<MediaListing>("GET", getMediaPath() + toQueryString({ folderId, limit: PAGE_MAX_FILES })),
  search: ({ name }) =>
    requestJson<MediaListing>("GET", getMediaPath() + toQueryString({ name, limit: PAGE_MAX_FILES })),
  async create(fields) {
    return (await requestJson<{ folder: MediaFolder }>("POST", `${getMediaPath()}/folders`, fields)).folder;
  },
  async update(id, fields) {
    return (await requestJson<{ folder: MediaFolder }>("PUT", getFolderPath(id), fields)).folder;
  },
  async delete(id) {
    await requestJson("DELETE", getFolderPath(id));
  },
};

type UploadOptions = Parameters<MediaFiles["upload"]>[0];

/** Returns the form with the files to upload. The URL contains the folder and the name, because the service needs them before the file. */
function createUploadForm({ file: input, data, name }: Partial<UploadOptions>): FormData {
  if (data instanceof FormData) return data;
  if (!(input instanceof Blob))
    throw new TypeError(`Svc.Media.Files.upload: "file" must be a Blob, or "data" must be a FormData`);
  const form = new FormData();
  form.append("file", input, name ?? (input instanceof File ? input.name : "file"));
  return form;
}

const mediaFiles: MediaFiles = {
  async upload(options) {
    const { folderId, name, ...content }: Partial<UploadOptions> = options ?? {};
    const path = `${getMediaPath()}/files${toQueryString({ folderId, name })}`;
    const answer = await getConnection().exchange("POST", path, createUploadForm({ ...content, name }));
    return ((await answer.json()) as { files: MediaFile[] }).files;
  },
  async get(id) {
    return (await requestJson<{ file: MediaFile }>("GET", getFilePath(id))).file;
  },
  async getAll() {
    const files: MediaFile[] = [];
    for (;;) {
      const path = `${getMediaPath()}/files${toQueryString({ limit: PAGE_MAX_FILES, offset: files.length })}`;
      const page = await requestJson<{ files: MediaFile[]; pagination: { hasMore: boolean } }>("GET", path);
      files.push(...page.files);
      if (!page.pagination.hasMore || page.files.length === 0) return files;
    }
  },
  async getContents(id, { size, format, quality } = {}) {
    const answer = await getConnection().exchange(
      "GET",
      getFilePath(id, `/contents${toQueryString({ size, format, quality })}`),
    );
    return answer.blob();
  },
  async update(id, fields) {
    return (await requestJson<{ file: MediaFile }>("PUT", getFilePath(id), fields)).file;
  },
  async delete(id) {
    await requestJson("DELETE", getFilePath(id));
  },
  link: (id, { expiresIn } = {}) => requestJson("POST", getFilePath(id, "/link"), { expiresIn }),
};

defineSvcNamespace("Media", {
  Folders: Object.freeze(wrapWithSvcErrors(mediaFolders)),
  Files: Object.freeze(wrapWithSvcErrors(mediaFiles)),
} satisfies Media);
