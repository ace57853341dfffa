/** Shapes of the version history and of comparisons in the GraphQL schema. No behaviour. */
import { GraphQLJSON } from "graphql-scalars";
import { Field, Int, ObjectType } from "type-graphql";
import type { Side } from "../../operations/actions/comparison.js";
import type { Snapshot, VersionSummary, VersionUser } from "../../operations/actions/versions.js";
import { ActionType } from "./action-resolver.js";

@ObjectType("VersionUser")
class VersionUserType {
  @Field(() => Int) id: number;
  @Field(() => String) firstName: string;
  @Field(() => String) lastName: string;
  @Field(() => String) email: string;
}

@ObjectType("VersionHead")
abstract class VersionHeadType {
  @Field(() => Int) id: number;
  @Field(() => String) createdAt: string;
  @Field(() => Int, { nullable: true }) userId: number | null;
  @Field(() => VersionUserType, { nullable: true }) user: VersionUser | null;
}

@ObjectType("ActionVersionSummary", { description: "Specification, Version snapshot: list summary." })
class VersionSummaryType extends VersionHeadType {
  @Field(() => String, { description: "create, update or pre-restore" }) action: string;
  @Field(() => String) name: string;
  @Field(() => String, { nullable: true }) description: string | null;
  @Field(() => Boolean) active: boolean;
  @Field(() => String) environment: string;
  @Field(() => String, { nullable: true }) frequency: string | null;
}

@ObjectType("ActionVersion", { description: "Specification, Version snapshot: full version." })
export class VersionType extends VersionHeadType {
  @Field(() => GraphQLJSON, { description: "The full configuration." }) data: Snapshot;
}

@ObjectType("VersionPagination")
class VersionPaginationType {
  @Field(() => Int) limit: number;
  @Field(() => Int) offset: number;
  @Field(() => Int) total: number;
  @Field(() => Boolean) hasMore: boolean;
}

@ObjectType("ActionVersionList")
export class VersionListType {
  @Field(() => [VersionSummaryType]) versions: VersionSummary[];
  @Field(() => VersionPaginationType) pagination: VersionPaginationType;
}

@ObjectType("RestoredActionState")
class RestoredActionType extends ActionType {
  @Field(() => Boolean) isPublished: boolean;
}

@ObjectType("RestoredAction")
export class RestoredType {
  @Field(() => RestoredActionType) action: RestoredActionType;
  @Field(() => Int) restoredFromVersionId: number;
  @Field(() => Int, { nullable: true, description: "Restoring it undoes this; null when no snapshot could be taken." })
  preRestoreVersionId: number | null;
}

@ObjectType("FieldChange")
class FieldChangeType {
  @Field(() => String) field: string;
  @Field(() => GraphQLJSON, { nullable: true }) before: unknown;
  @Field(() => GraphQLJSON, { nullable: true }) after: unknown;
}

@ObjectType("ActionDiff")
export class ActionDiffType {
  @Field(() => GraphQLJSON, { description: "master, production, or a version's id" }) from: Side;
  @Field(() => GraphQLJSON, { description: "master, production, or a version's id" }) to: Side;
  @Field(() => [FieldChangeType], { description: "The fields but code that differ." }) changes: FieldChangeType[];
  @Field(() => String, { nullable: true, description: "A unified diff of the code; null when it is the same." })
  code: string | null;
}
