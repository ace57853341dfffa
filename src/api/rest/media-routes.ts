/** REST routes of media folders and files: entries for the route table in rest/routes.ts. media-bytes.ts serves the contents of files. */
import type { MediaFile, MediaFolder } from "../../data/media-types.js";
import type { MediaItemKind, MediaItemRules } from "../../operations/media/media-rules.js";
import { FOLDER_SHAPE } from "../../rules/media-fields.js";
import { flatShape } from "../../rules/unknown-fields.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const MEDIA_ROUTE = "/v1/apps/:appId/media";

const replyWithFile = (request: RestRequest, file: MediaFile) => request.setTag(file, { file });
const replyWithFolder = (request: RestRequest, folder: MediaFolder) => request.setTag(folder, { folder });
const replyWithRules = (request: RestRequest, rules: MediaItemRules) =>
  request.setTag(rules, { accessRules: rules.accessRules });

const rulesOf = (kind: MediaItemKind): readonly Route[] => [
  {
    method: "GET",
    path: `${MEDIA_ROUTE}/${kind}s/:id/accessRules`,
    allowsAnonymous: true,
    handle: async ({ media }, request) =>
      replyWithRules(request, await media.ownRules(request.context, request.id("appId"), kind, request.id("id"))),
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
          request.id("appId"),
          kind,
          request.id("id"),
          request.body,
          request.ifMatch(),
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
        request.id("appId"),
        request.text("folderId"),
        request.text("name"),
        request.number("limit"),
        request.number("offset"),
      ),
  },
  {
    method: "POST",
    path: `${MEDIA_ROUTE}/folders`,
    successStatus: 201,
    allowsAnonymous: true,
    handle: async ({ media }, request) => {
      const { name, parentId } = request.object(FOLDER_SHAPE);
      return replyWithFolder(
        request,
        await media.createMediaFolder(request.context, request.id("appId"), name, parentId),
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
          request.id("appId"),
          request.id("id"),
          request.object(),
          request.ifMatch(),
        ),
      ),
  },
  {
    method: "DELETE",
    path: `${MEDIA_ROUTE}/folders/:id`,
    allowsAnonymous: true,
    handle: async ({ media }, request) => {
      await media.deleteMediaFolder(request.context, request.id("appId"), request.id("id"), request.ifMatch());
      return { status: "FOLDER_DELETED" };
    },
  },
  {
    method: "GET",
    path: `${MEDIA_ROUTE}/files`,
    allowsAnonymous: true,
    handle: ({ media }, request) =>
      media.allFiles(request.context, request.id("appId"), request.number("limit"), request.number("offset")),
  },
  {
    method: "GET",
    path: `${MEDIA_ROUTE}/files/:id`,
    allowsAnonymous: true,
    handle: async ({ media }, request) =>
      replyWithFile(request, await media.mediaFile(request.context, request.id("appId"), request.id("id"))),
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
          request.id("appId"),
          request.id("id"),
          request.object(),
          request.ifMatch(),
        ),
      ),
  },
  {
    method: "DELETE",
    path: `${MEDIA_ROUTE}/files/:id`,
    allowsAnonymous: true,
    handle: async ({ media }, request) => {
      await media.deleteMediaFile(request.context, request.id("appId"), request.id("id"), request.ifMatch());
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
        request.id("appId"),
        request.id("id"),
        request.object(flatShape(["expiresIn"]))["expiresIn"] ?? undefined,
      ),
  },
  ...rulesOf("file"),
  ...rulesOf("folder"),
];
