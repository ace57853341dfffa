/** The access rules of folders and files: read and written by the app itself, never by those whom they are about. */
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { isObject } from "../../rules/described.js";
import { parseMediaRules } from "../../rules/media-access.js";
import type { Admission } from "../access/gate.js";
import type { Files } from "./files.js";
import type { Folders } from "./folders.js";
import type { MediaCallers, MediaRules } from "./media-callers.js";
import { auditMedia } from "./media-trail.js";

const TABLES = { file: "media_file", folder: "media_folder" } as const;
export type RuledKind = keyof typeof TABLES;

export interface OwnRules {
  /** null: the nearest folder's that has some hold; without any nobody but the app itself gets in. */
  accessRules: MediaRules;
}

/** The rules as they came, or in a field of their own. */
const rulesIn = (body: unknown): unknown => (isObject(body) && "accessRules" in body ? body["accessRules"] : body);

export type RulesOfMedia = ReturnType<typeof createRulesOfMedia>;

export function createRulesOfMedia(options: { db: DataSource; callers: MediaCallers; files: Files; folders: Folders }) {
  const { db, callers, files, folders } = options;

  async function find(admission: Admission, appId: number, kind: RuledKind, id: number): Promise<MediaRules> {
    const grants = await callers.of(admission);
    if (!grants.isTrusted) throw grants.refusal();
    return (kind === "file" ? await files.known(grants, appId, id) : await folders.known(grants, appId, id)).ownRules;
  }

  return {
    async get(admission: Admission, appId: number, kind: RuledKind, id: number): Promise<OwnRules> {
      return { accessRules: await find(admission, appId, kind, id) };
    },

    /** Sets them whole. @throws REQUEST_INVALID, FILE_NOT_FOUND, FOLDER_NOT_FOUND */
    async set(admission: Admission, appId: number, kind: RuledKind, id: number, body: unknown): Promise<OwnRules> {
      await find(admission, appId, kind, id);
      const accessRules = parseMediaRules(rulesIn(body));
      const text = accessRules && JSON.stringify(accessRules);
      await db.transaction(async (manager) => {
        const sql = `UPDATE ${TABLES[kind]} SET access_rules = $3, updated_at = now() WHERE app_id = $1 AND id = $2 RETURNING id`;
        const changed = await rows(manager, sql, [appId, id, text]);
        if (changed.length === 0) throw new ActionError(kind === "file" ? "FILE_NOT_FOUND" : "FOLDER_NOT_FOUND");
        await auditMedia(manager, admission, appId, `media.${kind}.accessRules`, { [`${kind}Id`]: id });
      });
      return { accessRules };
    },
  };
}
