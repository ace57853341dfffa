import { randomBytes } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import sharp from "sharp";
import type { CredentialKind } from "../../src/data/credential.js";
import type { MediaFile } from "../../src/data/media-types.js";
import { generateToken, hashToken } from "../../src/operations/access/tokens.js";
import type { Answer, TestService } from "../harness/service.js";
import { issueTaskToken } from "../harness/task-token.js";

export interface Part {
  name: string;
  bytes: Uint8Array<ArrayBuffer> | string;
  /** Content type that the form declares. */
  type?: string;
}

export type Media = ReturnType<typeof mediaOf>;

export function mediaOf(service: TestService, as: string | null = "editor") {
  const root = `/v1/apps/${service.appId}/media`;
  const token = as !== null && as in service.tokens ? service.tokens[as as keyof TestService["tokens"]] : as;
  const auth: Record<string, string> = token === null ? {} : { "auth-token": token };

  async function send(parts: readonly Part[], fields: Record<string, string> = {}): Promise<Answer> {
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    for (const { name, bytes, type } of parts) form.append("file", new Blob([bytes], { type: type ?? "" }), name);
    const response = await fetch(`${service.url}${root}/files`, { method: "POST", headers: auth, body: form });
    return { http: response.status, headers: response.headers, body: await response.json() };
  }

  return {
    root,
    send,
    async upload(name: string, bytes: Part["bytes"], fields: Record<string, string> = {}): Promise<MediaFile> {
      const { http, body } = await send([{ name, bytes }], fields);
      if (http !== 201) throw new Error(`upload of ${name} failed: ${http} ${JSON.stringify(body)}`);
      return body.files[0];
    },
    rest: (method: string, path: string, body?: unknown) => service.rest(method, root + path, { as, body }),
    async folder(name: string, parentId?: number): Promise<number> {
      const { body } = await service.rest("POST", `${root}/folders`, { as, body: { name, parentId } });
      return body.folder.id;
    },
    /** Downloads a file. Returns the raw response. */
    contents: (id: number, query = "", headers: Record<string, string> = {}) =>
      fetch(`${service.url}${root}/files/${id}/contents${query}`, {
        headers: { ...auth, ...headers },
        redirect: "manual",
      }),
    async bytes(id: number, query = ""): Promise<Buffer> {
      return Buffer.from(await (await this.contents(id, query)).arrayBuffer());
    },
  };
}

/** Kinds of callers. "unnamed live" is a live page whose session belongs to no person; "no token" sends no credential. */
export type MediaCaller = CredentialKind | "unnamed live" | "no token";

/** Token of each caller; null for a caller without one. */
export type MediaTokens = ReadonlyMap<MediaCaller, string | null>;

/** Callers that have a right only if a rule gives it. */
export const CALLERS_WITH_RULES: readonly MediaCaller[] = ["viewer", "live", "unnamed live", "no token"];

export const refusalStatusOf = (who: MediaCaller): number => (who === "no token" ? 401 : 403);

/** Creates the token of a task, and the token of a live page without a person. Returns the tokens of all kinds of callers. */
export async function issueMediaTokens({ db, appId, tokens }: TestService): Promise<MediaTokens> {
  const unnamedLive = generateToken("live");
  await db.query("INSERT INTO credential (kind, hash, app_id) VALUES ('live', $1, $2)", [
    hashToken(unnamedLive),
    appId,
  ]);
  return new Map<MediaCaller, string | null>([
    ...(Object.entries(tokens) as [MediaCaller, string][]),
    ["task", await issueTaskToken(db, appId)],
    ["no token", null],
    ["unnamed live", unnamedLive],
  ]);
}

export async function createFolderWithRules(
  editor: Media,
  rules: unknown,
): Promise<{ folderId: number; fileId: number }> {
  const folderId = await editor.folder(`f${Math.random()}`);
  const { http, body } = await editor.rest("PUT", `/folders/${folderId}/accessRules`, { accessRules: rules });
  expect(http, JSON.stringify(body)).to.equal(200);
  return { folderId, fileId: (await editor.upload("f.txt", "x", { folderId: String(folderId) })).id };
}

/** Returns the paths of all files in a folder and its subfolders, except `store-id`, with which the store identifies itself. */
export function filesUnder(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const all = readdirSync(folder, { recursive: true, withFileTypes: true });
  return all
    .filter((entry) => entry.isFile() && entry.name !== "store-id")
    .map(({ parentPath, name }) => join(parentPath, name));
}

export const noise = (bytes: number): Uint8Array<ArrayBuffer> => new Uint8Array(randomBytes(bytes));

export const picture = (width: number, height: number, colour = "#a33") =>
  sharp({ create: { width, height, channels: 3, background: colour } });
