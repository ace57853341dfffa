/** Package `Svc.Media`: manages an app's folders and files by REST. It stores nothing. */

import type { MediaFile, MediaFolder } from "../../data/media-types.js";
import type { Media, MediaFiles, MediaFolders, MediaListing } from "../runtime/public-types.js";
import { idSegment, rejecting } from "./calls.js";
import { connection } from "./connection.js";
import { define } from "./define.js";

/** Maximum number of files that the service returns in one page. */
const PAGE = 1_000;

const root = () => `/v1/apps/${connection().appId()}/media`;

const file = (id: number, verb = "") => `${root()}/files/${idSegment(id, "FILE_NOT_FOUND", "a file's id")}${verb}`;
const folder = (id: number) => `${root()}/folders/${idSegment(id, "FOLDER_NOT_FOUND", "a folder's id")}`;

/** Returns the defined fields as a query string. */
function query(fields: Record<string, unknown>): string {
  const input = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
  return input.length === 0 ? "" : `?${new URLSearchParams(input.map(([name, value]) => [name, String(value)]))}`;
}

async function ask<Answer>(method: string, path: string, body?: unknown): Promise<Answer> {
  return (await connection().request(method, path, body)) as Answer;
}

const Folders: MediaFolders = {
  get: ({ folderId } = {}) => ask<MediaListing>("GET", root() + query({ folderId, limit: PAGE })),
  search: ({ name }) => ask<MediaListing>("GET", root() + query({ name, limit: PAGE })),
  async create(fields) {
    return (await ask<{ folder: MediaFolder }>("POST", `${root()}/folders`, fields)).folder;
  },
  async update(id, fields) {
    return (await ask<{ folder: MediaFolder }>("PUT", folder(id), fields)).folder;
  },
  async delete(id) {
    await ask("DELETE", folder(id));
  },
};

type UploadOptions = Parameters<MediaFiles["upload"]>[0];

/** Returns a form with the file. Other fields are in the URL, so that the order of the form's parts does not matter. */
function formOf({ file: input, data, name }: UploadOptions): FormData {
  if (data instanceof FormData) return data;
  if (!(input instanceof Blob)) throw new TypeError("Svc.Media.Files.upload takes a file, or data that is a FormData");
  const form = new FormData();
  form.append("file", input, name ?? (input instanceof File ? input.name : "file"));
  return form;
}

const Files: MediaFiles = {
  async upload(options) {
    const { folderId, name } = options;
    const path = `${root()}/files${query({ folderId, name })}`;
    const answer = await connection().exchange("POST", path, formOf(options));
    return ((await answer.json()) as { files: MediaFile[] }).files;
  },
  async get(id) {
    return (await ask<{ file: MediaFile }>("GET", file(id))).file;
  },
  async getAll() {
    const all: MediaFile[] = [];
    for (;;) {
      const path = `${root()}/files${query({ limit: PAGE, offset: all.length })}`;
      const page = await ask<{ files: MediaFile[]; pagination: { hasMore: boolean } }>("GET", path);
      all.push(...page.files);
      if (!page.pagination.hasMore || page.files.length === 0) return all;
    }
  },
  async getContents(id, { size, format, quality } = {}) {
    const answer = await connection().exchange("GET", file(id, `/contents${query({ size, format, quality })}`));
    return answer.blob();
  },
  async update(id, fields) {
    return (await ask<{ file: MediaFile }>("PUT", file(id), fields)).file;
  },
  async delete(id) {
    await ask("DELETE", file(id));
  },
  link: (id, { expiresIn } = {}) => ask("POST", file(id, "/link"), { expiresIn }),
};

define("Media", { Folders: Object.freeze(rejecting(Folders)), Files: Object.freeze(rejecting(Files)) } satisfies Media);
