/**
 * GraphQL resolver of an app's media files and folders, also used by the REST routes. Each method checks the caller's access and then calls
 * one operation.
 */
import { Arg, Ctx, Int, Mutation, Query, Resolver } from "type-graphql";
import type { MediaFile, MediaFolder } from "../../data/media-types.js";
import { LIST_ITEMS_PER_PAGE_MAX } from "../../limits.js";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { MediaContents } from "../../operations/media/contents.js";
import type { FolderListing, FolderListingOptions } from "../../operations/media/folders.js";
import type { ExpiringMediaUrl, SignedUrlParameters } from "../../operations/media/links.js";
import type { Media } from "../../operations/media/media.js";
import type { MediaChangeTarget } from "../../operations/media/media-rows.js";
import type { MediaItemKind, MediaItemRules } from "../../operations/media/media-rules.js";
import type { MediaUploadInProgress } from "../../operations/media/uploads.js";
import type { MediaAccessRule } from "../../rules/media-access.js";
import type { MediaFileVariant } from "../../rules/media-fields.js";
import type { ExpectedVersions } from "../../rules/precondition.js";
import type { RequestContext } from "../context.js";
import { AppIdArgument, Limit, Offset } from "./arguments.js";
import { type ChangePrecondition, IfUpdatedAtArgument, toExpectedVersions } from "./if-updated-at.js";
import {
  MediaAccessRuleInput,
  MediaAccessRuleType,
  MediaFileType,
  MediaFolderType,
  MediaLinkType,
  MediaListingType,
} from "./media-types.js";

/** Returns only the fields that the caller passed. A null counts as passed, because a null folder means the top folder. */
const removeAbsentFields = (fields: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

const toMediaRule = ({ type, allow, user, enabled }: MediaAccessRuleInput): Record<string, unknown> => ({
  type,
  allow: allow === "user" ? { user: user ?? null } : allow,
  ...(typeof enabled === "boolean" && { enabled }),
});

const toGraphqlRule = ({ type, allow, enabled }: MediaAccessRule): MediaAccessRuleType => ({
  type,
  allow: typeof allow === "string" ? allow : "user",
  user: typeof allow === "string" ? null : allow.user,
  enabled: enabled ?? true,
});

@Resolver()
export class MediaResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly media: Media,
  ) {}

  @Query(() => MediaListingType, {
    description:
      "Lists the content of a folder, or searches all files and folders of the app by name. Returns at most 1,000 files.",
  })
  async mediaFolder(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("folderId", () => Int, { nullable: true, description: "ID of the folder; null for the top level." })
    folderId?: unknown,
    @Arg("name", () => String, {
      nullable: true,
      description:
        "Text that the names of files and folders must contain, to search the whole app; null to list one folder.",
    })
    name?: unknown,
    @Limit(LIST_ITEMS_PER_PAGE_MAX) limit?: number | null,
    @Offset() offset?: number | null,
  ): Promise<FolderListing> {
    const admission = await this.accessChecks.admitAppRequest(context, "readMedia", appId);
    const options: FolderListingOptions = { folderId: folderId ?? undefined, name, limit, offset };
    return this.media.folders.list(admission, appId, options);
  }

  @Query(() => MediaFileType, { description: "Returns a file." })
  async mediaFile(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the file." }) id: number,
  ): Promise<MediaFile> {
    const admission = await this.accessChecks.admitAppRequest(context, "readMedia", appId);
    return this.media.files.get(admission, appId, id);
  }

  @Query(() => MediaLinkType, { description: "Returns a temporary link to the contents of a file." })
  async mediaLink(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the file." }) id: number,
    @Arg("expiresIn", () => Int, {
      nullable: true,
      description: "Lifetime of the link in seconds, 1 to 604,800; 3,600 by default.",
    })
    expiresIn?: unknown,
  ): Promise<ExpiringMediaUrl> {
    const admission = await this.accessChecks.admitAppRequest(context, "readMedia", appId);
    return this.media.links.create(admission, appId, id, expiresIn);
  }

  @Query(() => [MediaAccessRuleType], {
    nullable: true,
    description: "Returns the access rules of a file or folder; null if the rules of its parent folder apply.",
  })
  async mediaAccessRules(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("fileId", () => Int, { nullable: true, description: "ID of the file; null for a folder." }) fileId?:
      | number
      | null,
    @Arg("folderId", () => Int, { nullable: true, description: "ID of the folder; ignored if `fileId` is set." })
    folderId?: number | null,
  ): Promise<MediaAccessRuleType[] | null> {
    const [kind, id] = fileId == null ? (["folder", folderId ?? 0] as const) : (["file", fileId] as const);
    const { accessRules } = await this.getOwnRules(context, appId, kind, id);
    return accessRules?.map(toGraphqlRule) ?? null;
  }

  @Mutation(() => MediaFolderType, { description: "Creates a folder." })
  async createMediaFolder(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("name", () => String, { description: "Name of 1 to 255 characters without slashes." }) name: unknown,
    @Arg("parentId", () => Int, { nullable: true, description: "ID of the parent folder; null for the top level." })
    parentId?: unknown,
  ): Promise<MediaFolder> {
    const admission = await this.accessChecks.admitAppRequest(context, "writeMedia", appId);
    return this.media.folders.create(admission, appId, { name, parentId });
  }

  @Mutation(() => MediaFolderType, { description: "Updates a folder; omitted properties keep their values." })
  async updateMediaFolder(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the folder." }) id: number,
    @Arg("name", () => String, { nullable: true, description: "Name of 1 to 255 characters without slashes." })
    name?: unknown,
    @Arg("parentId", () => Int, {
      nullable: true,
      description: "ID of the parent folder; null moves the folder to the top level.",
    })
    parentId?: unknown,
    @Arg("accessRules", () => [MediaAccessRuleInput], {
      nullable: true,
      description: "All access rules of the folder; null to inherit those of the parent folder.",
    })
    accessRules?: MediaAccessRuleInput[] | null,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<MediaFolder> {
    const precondition = await this.changeRules(
      context,
      "folder",
      { appId, id, precondition: toExpectedVersions(ifUpdatedAt) },
      accessRules,
    );
    const admission = await this.accessChecks.admitAppRequest(context, "writeMedia", appId);
    return this.media.folders.update(admission, { appId, id, precondition }, removeAbsentFields({ name, parentId }));
  }

  @Mutation(() => Boolean, { description: "Deletes a folder with its content." })
  async deleteMediaFolder(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the folder." }) id: number,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<boolean> {
    const admission = await this.accessChecks.admitAppRequest(context, "removeMedia", appId);
    await this.media.folders.remove(admission, { appId, id, precondition: toExpectedVersions(ifUpdatedAt) });
    return true;
  }

  @Mutation(() => MediaFileType, { description: "Updates a file; omitted properties keep their values." })
  async updateMediaFile(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the file." }) id: number,
    @Arg("name", () => String, { nullable: true, description: "Name of 1 to 255 characters without slashes." })
    name?: unknown,
    @Arg("folderId", () => Int, {
      nullable: true,
      description: "ID of the folder; null moves the file to the top level.",
    })
    folderId?: unknown,
    @Arg("accessRules", () => [MediaAccessRuleInput], {
      nullable: true,
      description: "All access rules of the file; null to inherit those of the folder.",
    })
    accessRules?: MediaAccessRuleInput[] | null,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<MediaFile> {
    const precondition = await this.changeRules(
      context,
      "file",
      { appId, id, precondition: toExpectedVersions(ifUpdatedAt) },
      accessRules,
    );
    const admission = await this.accessChecks.admitAppRequest(context, "writeMedia", appId);
    return this.media.files.update(admission, { appId, id, precondition }, removeAbsentFields({ name, folderId }));
  }

  @Mutation(() => Boolean, { description: "Deletes a file." })
  async deleteMediaFile(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the file." }) id: number,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<boolean> {
    const admission = await this.accessChecks.admitAppRequest(context, "removeMedia", appId);
    await this.media.files.remove(admission, { appId, id, precondition: toExpectedVersions(ifUpdatedAt) });
    return true;
  }

  /**
   * Changes the access rules of a file or folder if the request contains rules. Returns the precondition for the request's next change. If
   * the request had a precondition and the rules changed, the returned one expects the new version.
   */
  private async changeRules(
    context: RequestContext,
    kind: MediaItemKind,
    { appId, id, precondition }: MediaChangeTarget,
    accessRules: MediaAccessRuleInput[] | null | undefined,
  ): Promise<ExpectedVersions> {
    if (accessRules === undefined) return precondition;
    const rules = accessRules?.map(toMediaRule) ?? null;
    const { updatedAt } = await this.setOwnRules(context, appId, kind, id, rules, precondition);
    return precondition && [updatedAt];
  }

  /** Returns all files of an app in one list. Only REST has this operation. */
  async listAllFiles(context: RequestContext, appId: number, limit?: number, offset?: number) {
    const admission = await this.accessChecks.admitAppRequest(context, "readMedia", appId);
    return this.media.files.list(admission, appId, { limit, offset });
  }

  async changeFolder(
    context: RequestContext,
    appId: number,
    id: number,
    body: unknown,
    precondition: ExpectedVersions,
  ): Promise<MediaFolder> {
    const admission = await this.accessChecks.admitAppRequest(context, "writeMedia", appId);
    return this.media.folders.update(admission, { appId, id, precondition }, body);
  }

  async changeFile(
    context: RequestContext,
    appId: number,
    id: number,
    body: unknown,
    precondition: ExpectedVersions,
  ): Promise<MediaFile> {
    const admission = await this.accessChecks.admitAppRequest(context, "writeMedia", appId);
    return this.media.files.update(admission, { appId, id, precondition }, body);
  }

  async getOwnRules(context: RequestContext, appId: number, kind: MediaItemKind, id: number): Promise<MediaItemRules> {
    const admission = await this.accessChecks.admitAppRequest(context, "readMedia", appId);
    return this.media.rules.get(admission, kind, { appId, id });
  }

  async setOwnRules(
    context: RequestContext,
    appId: number,
    kind: MediaItemKind,
    id: number,
    body: unknown,
    precondition?: ExpectedVersions,
  ): Promise<MediaItemRules> {
    const admission = await this.accessChecks.admitAppRequest(context, "writeMedia", appId);
    return this.media.rules.set(admission, kind, { appId, id, precondition }, body);
  }

  async beginUpload(context: RequestContext, appId: number, length: number | null): Promise<MediaUploadInProgress> {
    return this.media.uploads.beginUpload(
      await this.accessChecks.admitAppRequest(context, "writeMedia", appId),
      appId,
      length,
    );
  }

  async openContents(
    context: RequestContext,
    appId: number,
    id: number,
    variant: MediaFileVariant,
    link: SignedUrlParameters | null,
  ): Promise<MediaContents> {
    return this.media.contents.openContents(
      await this.accessChecks.admitAppRequest(context, "readMedia", appId),
      appId,
      id,
      variant,
      link,
    );
  }
}
