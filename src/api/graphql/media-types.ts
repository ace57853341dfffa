/** Shapes of an app's media in the GraphQL schema. No behaviour. */
import { GraphQLJSON, GraphQLSafeInt } from "graphql-scalars";
import { Field, InputType, Int, ObjectType } from "type-graphql";
import type { MediaFile, MediaFolder } from "../../data/media-types.js";
import type { MediaRight } from "../../rules/media-access.js";
import { DateTime, enumOf } from "./leaf-types.js";

export const MediaRightEnum = enumOf<MediaRight>("MediaRight", "Permission that an access rule of media grants.", {
  read: "Read files and folders.",
  create: "Create files and folders.",
  update: "Change files and folders.",
  delete: "Delete files and folders.",
});

type Allowed = "all" | "loggedIn" | "user";
const AllowedEnum = enumOf<Allowed>("MediaAllow", "Callers to whom an access rule of media applies.", {
  all: "All callers, including anonymous ones.",
  loggedIn: "Users who are signed in to the page.",
  user: "Signed-in users whose entry passes the tests in `user`.",
});

/** A rule of rules/media-access.ts, with `allow` split into two fields. */
@ObjectType("MediaAccessRule")
export class MediaAccessRuleType {
  @Field(() => [MediaRightEnum]) type: readonly MediaRight[];
  @Field(() => AllowedEnum) allow: Allowed;
  @Field(() => GraphQLJSON, {
    nullable: true,
    description: "A where on the user: {Column: {equals, notequals or contains}}.",
  })
  user: unknown;
  @Field(() => Boolean) enabled: boolean;
}

@InputType("MediaAccessRuleInput")
export class MediaAccessRuleInput {
  @Field(() => [MediaRightEnum]) type: MediaRight[];
  @Field(() => AllowedEnum) allow: Allowed;
  @Field(() => GraphQLJSON, {
    nullable: true,
    description: "With `allow: user`: {Column: {equals, notequals or contains}}.",
  })
  user?: unknown;
  @Field(() => Boolean, { nullable: true, description: "true unless given" }) enabled?: boolean | null;
}

@ObjectType("MediaFolder")
export class MediaFolderType {
  @Field(() => Int) id: number;
  @Field(() => String) name: string;
  @Field(() => Int, { nullable: true, description: "null: at the top" }) parentId: number | null;
  @Field(() => Int, { nullable: true }) userId: number | null;
  @Field(() => DateTime) createdAt: string;
  @Field(() => DateTime) updatedAt: string;
}

@ObjectType("MediaFile", { description: "A file of the app. Its bytes come and go by REST alone." })
export class MediaFileType {
  @Field(() => Int) id: number;
  @Field(() => String) name: string;
  @Field(() => String, { description: "By its bytes, whatever its name says." }) contentType: string;
  @Field(() => String, { description: "Where its contents are." }) url: string;
  @Field(() => String, { nullable: true, description: "Where a small picture of it is." }) thumbnail: string | null;
  @Field(() => [Int], { nullable: true, description: "Width and height of a picture, as it is shown." })
  size: [number, number] | null;
  @Field(() => GraphQLSafeInt) bytes: number;
  @Field(() => String, { description: "SHA-256 in hexadecimal." }) checksum: string;
  @Field(() => Int, { nullable: true, description: "null: at the top" }) folderId: number | null;
  @Field(() => Int, { nullable: true }) userId: number | null;
  @Field(() => DateTime) createdAt: string;
  @Field(() => DateTime) updatedAt: string;
}

@ObjectType("MediaPagination")
class MediaPaginationType {
  @Field(() => Int) total: number;
  @Field(() => Boolean) hasMore: boolean;
}

@ObjectType("MediaPathFolder")
class MediaPathFolderType {
  @Field(() => Int) id: number;
  @Field(() => String) name: string;
}

@ObjectType("MediaListing", { description: "What lies in a folder, or has a name." })
export class MediaListingType {
  @Field(() => MediaFolderType, { nullable: true, description: "null: the top, or a search" })
  folder: MediaFolder | null;
  @Field(() => [MediaPathFolderType], {
    description: "What the folder lies in, from the top; for the app itself alone.",
  })
  path: MediaPathFolderType[];
  @Field(() => [MediaFolderType]) folders: MediaFolder[];
  @Field(() => [MediaFileType]) files: MediaFile[];
  @Field(() => MediaPaginationType, { description: "Of the files." }) pagination: MediaPaginationType;
}

@ObjectType("MediaLink", { description: "An address of a file's contents that needs no credential." })
export class MediaLinkType {
  @Field(() => String) url: string;
  @Field(() => DateTime) expiresAt: string;
}
