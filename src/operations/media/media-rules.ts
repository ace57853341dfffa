/**
 * Reads and replaces the access rules of media folders and files. Only trusted callers can do this, such as editors and back ends of the
 * app.
 */
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { isObject } from "../../rules/describe-value.js";
import { parseMediaRules } from "../../rules/media-access.js";
import { NEXT_UPDATED_AT_SQL, requireExpectedVersion } from "../../rules/precondition.js";
import { createFlatShape, refuseUnknownFields } from "../../rules/unknown-fields.js";
import type { AdmittedRequest } from "../access/access-checks.js";
import { transactWithAppLock } from "../settings/app-lock.js";
import type { MediaFiles } from "./files.js";
import type { MediaFolders } from "./folders.js";
import { recordMediaChange } from "./media-audit.js";
import type { MediaAccess, MediaRightsResolver, MediaRules } from "./media-callers.js";
import type { MediaChangeTarget } from "./media-rows.js";

const TABLE_OF_KIND = { file: "media_file", folder: "media_folder" } as const;
export type MediaItemKind = keyof typeof TABLE_OF_KIND;

export interface MediaItemRules {
  /** Null if the item has no rules of its own. Then the rules of the nearest containing folder with rules apply. */
  accessRules: MediaRules;
  updatedAt: string;
}

/** Returns the access rules in a request body: the field `accessRules`, or the whole body if it has no such field. */
const readAccessRules = (body: unknown): unknown =>
  isObject(body) && "accessRules" in body ? body["accessRules"] : body;

const RULES_SHAPE = createFlatShape(["accessRules"]);

interface MediaRulesStoreOptions {
  db: Db;
  mediaRights: MediaRightsResolver;
  files: MediaFiles;
  folders: MediaFolders;
}

export class MediaRulesStore {
  constructor(private readonly options: MediaRulesStoreOptions) {}

  /** Returns the rights of a trusted caller. @throws UNAUTHORIZED or FORBIDDEN for other callers */
  private async requireTrustedAccess(admission: AdmittedRequest): Promise<MediaAccess> {
    const grants = await this.options.mediaRights.resolveAccess(admission);
    if (!grants.isTrusted) throw grants.createAccessError();
    return grants;
  }

  private async readRules(
    grants: MediaAccess,
    kind: MediaItemKind,
    { appId, id }: MediaChangeTarget,
    executor?: SqlClient,
  ) {
    const { files, folders } = this.options;
    const items = kind === "file" ? files : folders;
    const { ownRules, updatedAt } = await items.findOrThrow(grants, appId, id, executor);
    return { accessRules: ownRules, updatedAt: updatedAt.toISOString() };
  }

  async get(admission: AdmittedRequest, kind: MediaItemKind, target: MediaChangeTarget): Promise<MediaItemRules> {
    return this.readRules(await this.requireTrustedAccess(admission), kind, target);
  }

  /**
   * Replaces the rules of a file or folder.
   * @throws UNAUTHORIZED, FORBIDDEN, REQUEST_INVALID, FILE_NOT_FOUND, FOLDER_NOT_FOUND, RESOURCE_CHANGED
   */
  async set(
    admission: AdmittedRequest,
    kind: MediaItemKind,
    target: MediaChangeTarget,
    body: unknown,
  ): Promise<MediaItemRules> {
    const { appId, id, precondition } = target;
    const grants = await this.requireTrustedAccess(admission);
    await this.readRules(grants, kind, target);
    const accessRules = parseMediaRules(readAccessRules(body));
    refuseUnknownFields(body, RULES_SHAPE);
    const text = accessRules && JSON.stringify(accessRules);
    const updatedAt = await transactWithAppLock(this.options.db, appId, async (manager) => {
      if (precondition) requireExpectedVersion(await this.readRules(grants, kind, target, manager), precondition);
      const sql = `UPDATE ${TABLE_OF_KIND[kind]} SET access_rules = $3, updated_at = ${NEXT_UPDATED_AT_SQL}
                      WHERE app_id = $1 AND id = $2 RETURNING updated_at AS "updatedAt"`;
      const [changedItem] = await rows<{ updatedAt: Date }>(manager, sql, [appId, id, text]);
      if (!changedItem) throw new ActionError(kind === "file" ? "FILE_NOT_FOUND" : "FOLDER_NOT_FOUND");
      await recordMediaChange(manager, admission, appId, `media.${kind}.accessRules`, { [`${kind}Id`]: id });
      return changedItem.updatedAt.toISOString();
    });
    return { accessRules, updatedAt };
  }
}
