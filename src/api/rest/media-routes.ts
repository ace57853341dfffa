/** REST routes of media folders and files: entries for the route table in rest/routes.ts. media-bytes.ts serves the contents of files. */
import type { MediaFile, MediaFolder } from "../../data/media-types.js";
import type { MediaItemKind, MediaItemRules } from "../../operations/media/media-rules.js";
import { MEDIA_FOLDER_SHAPE } from "../../rules/media-fields.js";
import { createFlatShape } from "../../rules/unknown-fields.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const MEDIA_ROUTE = "/v1/apps/:appId/media";

const replyWithFile = (request: RestRequest, file: MediaFile) => request.setTag(file, { file });
const replyWithFolder = (request: RestRequest, folder: MediaFolder) => request.setTag(folder, { folder });
const replyWithRules = (request: RestRequest, rules: MediaItemRules) =>
  request.setTag(rules, { accessRules: rules.accessRules });

const createAccessRuleRoutes = (kind: MediaItemKind): readonly Route[] => [
  {
    method: "GET",
    path: `${MEDIA_ROUTE}/${kind}s/:id/accessRules`,
    allowsAnonymous: true,
    handle: async ({ media }, request) =>
      replyWithRules(
        request,
        await media.getOwnRules(request.context, request.pathId("appId"), kind, request.pathId("id")),
      ),
  },
  {
    method: "PUT",
    path: `${MEDIA_ROUTE}/${kind}s/:id/accessRules`,
    allowsAnonymous: true,
    handle: async ({ media }, request) =>
      replyWithRules(
        request,
        await media.setOwnRules(
          request.context,
          request.pathId("appId"),
          kind,
          request.pathId("id"),
          request.body,
          request.readExpectedVersions(),
        ),
      ),
  },
];

export const mediaRoutes: readonly Route[] = [
  {
    method: "GET",
    path: MEDIA_ROUTE,
    allowsAnonymous: true,
    handle: ({ media }, request) =>
      media.mediaFolder(
        request.context,
        request.pathId("appId"),
        request.queryText("folderId"),
        request.queryText("name"),
        request.queryNumber("limit"),
        request.queryNumber("offset"),
      ),
  },
  {
    method: "POST",
    path: `${MEDIA_ROUTE}/folders`,
    successStatus: 201,
    allowsAnonymous: true,
    handle: async ({ media }, request) => {
      const { name, parentId } = request.bodyFields(MEDIA_FOLDER_SHAPE);
      return replyWithFolder(
        request,
        await media.createMediaFolder(request.context, request.pathId("appId"), name, parentId),
      );
    },
  },
  {
    method: "PUT",
    path: `${MEDIA_ROUTE}/folders/:id`,
    allowsAnonymous: true,
    handle: async ({ media }, request) =>
      replyWithFolder(
        request,
        await media.changeFolder(
          request.context,
          request.pathId("appId"),
          request.pathId("id"),
          request.bodyFields(),
          request.readExpectedVersions(),
        ),
      ),
  },
  {
    method: "DELETE",
    path: `${MEDIA_ROUTE}/folders/:id`,
    allowsAnonymous: true,
    handle: async ({ media }, request) => {
      await media.deleteMediaFolder(
        request.context,
        request.pathId("appId"),
        request.pathId("id"),
        request.readExpectedVersions(),
      );
      return { status: "FOLDER_DELETED" };
    },
  },
  {
    method: "GET",
    path: `${MEDIA_ROUTE}/files`,
    allowsAnonymous: true,
    handle: ({ media }, request) =>
      media.listAllFiles(
        request.context,
        request.pathId("appId"),
        request.queryNumber("limit"),
        request.queryNumber("offset"),
      ),
  },
  {
    method: "GET",
    path: `${MEDIA_ROUTE}/files/:id`,
    allowsAnonymous: true,
    handle: async ({ media }, request) =>
      replyWithFile(request, await media.mediaFile(request.context, request.pathId("appId"), request.pathId("id"))),
  },
  {
    method: "PUT",
    path: `${MEDIA_ROUTE}/files/:id`,
    allowsAnonymous: true,
    handle: async ({ media }, request) =>
      replyWithFile(
        request,
        await media.changeFile(
          request.context,
          request.pathId("appId"),
          request.pathId("id"),
          request.bodyFields(),
          request.readExpectedVersions(),
        ),
      ),
  },
  {
    method: "DELETE",
    path: `${MEDIA_ROUTE}/files/:id`,
    allowsAnonymous: true,
    handle: async ({ media }, request) => {
      await media.deleteMediaFile(
        request.context,
        request.pathId("appId"),
        request.pathId("id"),
        request.readExpectedVersions(),
      );
      return { status: "FILE_DELETED" };
    },
  },
  {
    method: "POST",
    path: `${MEDIA_ROUTE}/files/:id/link`,
    allowsAnonymous: true,
    handle: ({ media }, request) =>
      media.mediaLink(
        request.context,
        request.pathId("appId"),
        request.pathId("id"),
        request.bodyFields(createFlatShape(["expiresIn"]))["expiresIn"] ?? undefined,
      ),
  },
  ...createAccessRuleRoutes("file"),
  ...createAccessRuleRoutes("folder"),
];
