/** GraphQL types of an app's media: only declarations. */
import { GraphQLJSON, GraphQLSafeInt } from "graphql-scalars";
import { Field, InputType, Int, ObjectType } from "type-graphql";
import type { MediaFile, MediaFolder } from "../../data/media-types.js";
import type { MediaRight } from "../../rules/media-access.js";
import { createGraphqlEnum, DateTime } from "./leaf-types.js";
import { DEPRECATED_IN_FAVOR_OF_PAGE, ListPageType, PageItemsField } from "./page-types.js";

export const MediaRightEnum = createGraphqlEnum<MediaRight>(
  "MediaRight",
  "Permission that an access rule of media grants.",
  {
    read: "Read files and folders.",
    create: "Create files and folders.",
    update: "Change files and folders.",
    delete: "Delete files and folders.",
  },
);

type MediaAllowedCallers = "all" | "loggedIn" | "user";
const MediaAllowedCallersEnum = createGraphqlEnum<MediaAllowedCallers>(
  "MediaAllow",
  "Callers that an access rule of media applies to.",
  {
    all: "All callers, including anonymous ones.",
    loggedIn: "Users who are signed in to the page.",
    user: "Signed-in users whose entry passes the tests in `user`.",
  },
);

/** Access rule as in rules/media-access.ts, with `allow` split in two, because GraphQL has no union of a text and an object. */
@ObjectType("MediaAccessRule", { description: "Rule that grants access to media." })
export class MediaAccessRuleType {
  @Field(() => [MediaRightEnum], { description: "Permissions that the rule grants." }) type: readonly MediaRight[];
  @Field(() => MediaAllowedCallersEnum, { description: "Callers that the rule applies to." })
  allow: MediaAllowedCallers;
  @Field(() => GraphQLJSON, {
    nullable: true,
    description:
      "Tests of the user's columns, {Column: {equals, notequals or contains}}; null unless `allow` is `user`.",
  })
  user: unknown;
  @Field(() => Boolean, { description: "True if the rule is in effect." }) enabled: boolean;
}

@InputType("MediaAccessRuleInput", { description: "Rule that grants access to media." })
export class MediaAccessRuleInput {
  @Field(() => [MediaRightEnum], { description: "Permissions that the rule grants." }) type: MediaRight[];
  @Field(() => MediaAllowedCallersEnum, { description: "Callers that the rule applies to." })
  allow: MediaAllowedCallers;
  @Field(() => GraphQLJSON, {
    nullable: true,
    description:
      "Tests of the user's columns, {Column: {equals, notequals or contains}}; required if `allow` is `user`.",
  })
  user?: unknown;
  @Field(() => Boolean, { nullable: true, description: "True if the rule is in effect; true by default." }) enabled?:
    | boolean
    | null;
}

@ObjectType("MediaFolder", { description: "Folder of media files." })
export class MediaFolderType {
  @Field(() => Int, { description: "ID of the folder." }) id: number;
  @Field(() => String, { description: "Name of the folder." }) name: string;
  @Field(() => Int, { nullable: true, description: "ID of the parent folder; null at the top level." }) parentId:
    | number
    | null;
  @Field(() => Int, { nullable: true, description: "ID of the person who created the folder; null if no person did." })
  userId: number | null;
  @Field(() => DateTime, { description: "Time of creation." }) createdAt: string;
  @Field(() => DateTime, { description: "Time of the last change." }) updatedAt: string;
}

@ObjectType("MediaFile", { description: "File of the app. Its contents are uploaded and downloaded through REST." })
export class MediaFileType {
  @Field(() => Int, { description: "ID of the file." }) id: number;
  @Field(() => String, { description: "Name of the file." }) name: string;
  @Field(() => String, { description: "Media type, detected from the contents." }) contentType: string;
  @Field(() => String, { description: "URL of the contents." }) url: string;
  @Field(() => String, {
    nullable: true,
    description:
      "URL of a small version of an image; null for other files, and for images that the service cannot decode.",
  })
  thumbnail: string | null;
  @Field(() => [Int], {
    nullable: true,
    description:
      "Displayed width and height of an image in pixels; null for other files, and for images that the service cannot decode.",
  })
  size: [number, number] | null;
  @Field(() => GraphQLSafeInt, { description: "Size of the contents in bytes." }) bytes: number;
  @Field(() => String, { description: "SHA-256 of the contents in hexadecimal." }) checksum: string;
  @Field(() => Int, { nullable: true, description: "ID of the folder; null at the top level." }) folderId:
    | number
    | null;
  @Field(() => Int, { nullable: true, description: "ID of the person who uploaded the file; null if no person did." })
  userId: number | null;
  @Field(() => DateTime, { description: "Time of creation." }) createdAt: string;
  @Field(() => DateTime, { description: "Time of the last change." }) updatedAt: string;
}

@ObjectType("MediaPagination", { description: "Position of a page in a list of files." })
class MediaPaginationType {
  @Field(() => Int, { description: "Number of matching files on all pages." }) total: number;
  @Field(() => Boolean, { description: "True if files follow this page." }) hasMore: boolean;
}

@ObjectType("MediaPathFolder", { description: "Folder in a path." })
class MediaPathFolderType {
  @Field(() => Int, { description: "ID of the folder." }) id: number;
  @Field(() => String, { description: "Name of the folder." }) name: string;
}

@ObjectType("MediaListing", {
  implements: ListPageType,
  description: "Content of a folder, or the result of a search.",
})
export class MediaListingType {
  @Field(() => MediaFolderType, {
    nullable: true,
    description: "Listed folder; null for the top level and for a search.",
  })
  folder: MediaFolder | null;
  @Field(() => [MediaPathFolderType], {
    description: "Parent folders of the listed folder, from the top level down; empty for the users of pages.",
  })
  path: MediaPathFolderType[];
  @Field(() => [MediaFolderType], { description: "Folders that match." }) folders: MediaFolder[];
  @PageItemsField(() => [MediaFileType], "Files on this page.") files: MediaFile[];
  @Field(() => MediaPaginationType, {
    ...DEPRECATED_IN_FAVOR_OF_PAGE,
    description: "Position of this page in the list of files.",
  })
  pagination: MediaPaginationType;
}

@ObjectType("MediaLink", { description: "Temporary link to the contents of a file, which needs no credentials." })
export class MediaLinkType {
  @Field(() => String, { description: "URL of the contents." }) url: string;
  @Field(() => DateTime, { description: "Time when the link expires." }) expiresAt: string;
}
