/** Folders and files of an app over REST, their bytes apart, as rows of the REST table. */
import type { MediaFile, MediaFolder } from "../../data/media-types.js";
import type { OwnRules, RuledKind } from "../../operations/media/media-rules.js";
import { FOLDER_SHAPE } from "../../rules/media-fields.js";
import { flatShape } from "../../rules/unknown-fields.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const MEDIA_ROUTE = "/v1/apps/:appId/media";

const replyWithFile = (q: RestRequest, file: MediaFile) => q.at(file, { file });
const replyWithFolder = (q: RestRequest, folder: MediaFolder) => q.at(folder, { folder });
const replyWithRules = (q: RestRequest, rules: OwnRules) => q.at(rules, { accessRules: rules.accessRules });

const rulesOf = (kind: RuledKind): readonly Route[] => [
  {
    method: "GET",
    path: `${MEDIA_ROUTE}/${kind}s/:id/accessRules`,
    open: true,
    answer: async ({ media }, q) => replyWithRules(q, await media.ownRules(q.context, q.id("appId"), kind, q.id("id"))),
  },
  {
    method: "PUT",
    path: `${MEDIA_ROUTE}/${kind}s/:id/accessRules`,
    open: true,
    answer: async ({ media }, q) =>
      replyWithRules(q, await media.setOwnRules(q.context, q.id("appId"), kind, q.id("id"), q.body, q.ifMatch())),
  },
];

export const mediaRoutes: readonly Route[] = [
  {
    method: "GET",
    path: MEDIA_ROUTE,
    open: true,
    answer: ({ media }, q) =>
      media.mediaFolder(
        q.context,
        q.id("appId"),
        q.text("folderId"),
        q.text("name"),
        q.number("limit"),
        q.number("offset"),
      ),
  },
  {
    method: "POST",
    path: `${MEDIA_ROUTE}/folders`,
    http: 201,
    open: true,
    answer: async ({ media }, q) => {
      const { name, parentId } = q.object(FOLDER_SHAPE);
      return replyWithFolder(q, await media.createMediaFolder(q.context, q.id("appId"), name, parentId));
    },
  },
  {
    method: "PUT",
    path: `${MEDIA_ROUTE}/folders/:id`,
    open: true,
    answer: async ({ media }, q) =>
      replyWithFolder(q, await media.changeFolder(q.context, q.id("appId"), q.id("id"), q.object(), q.ifMatch())),
  },
  {
    method: "DELETE",
    path: `${MEDIA_ROUTE}/folders/:id`,
    open: true,
    answer: async ({ media }, q) => {
      await media.deleteMediaFolder(q.context, q.id("appId"), q.id("id"), q.ifMatch());
      return { status: "FOLDER_DELETED" };
    },
  },
  {
    method: "GET",
    path: `${MEDIA_ROUTE}/files`,
    open: true,
    answer: ({ media }, q) => media.allFiles(q.context, q.id("appId"), q.number("limit"), q.number("offset")),
  },
  {
    method: "GET",
    path: `${MEDIA_ROUTE}/files/:id`,
    open: true,
    answer: async ({ media }, q) => replyWithFile(q, await media.mediaFile(q.context, q.id("appId"), q.id("id"))),
  },
  {
    method: "PUT",
    path: `${MEDIA_ROUTE}/files/:id`,
    open: true,
    answer: async ({ media }, q) =>
      replyWithFile(q, await media.changeFile(q.context, q.id("appId"), q.id("id"), q.object(), q.ifMatch())),
  },
  {
    method: "DELETE",
    path: `${MEDIA_ROUTE}/files/:id`,
    open: true,
    answer: async ({ media }, q) => {
      await media.deleteMediaFile(q.context, q.id("appId"), q.id("id"), q.ifMatch());
      return { status: "FILE_DELETED" };
    },
  },
  {
    method: "POST",
    path: `${MEDIA_ROUTE}/files/:id/link`,
    open: true,
    answer: ({ media }, q) =>
      media.mediaLink(
        q.context,
        q.id("appId"),
        q.id("id"),
        q.object(flatShape(["expiresIn"]))["expiresIn"] ?? undefined,
      ),
  },
  ...rulesOf("file"),
  ...rulesOf("folder"),
];
