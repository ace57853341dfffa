/** Shapes of the version history and of comparisons in the GraphQL schema. No behaviour. */
import { Field, ID, Int, ObjectType } from "type-graphql";
import type { Asset, Environment } from "../../data/action-types.js";
import type { Person } from "../../data/person.js";
import type { Side } from "../../operations/actions/comparison.js";
import type { Snapshot, VersionSummary } from "../../operations/actions/versions.js";
import type { ActionInput } from "../../rules/action-input.js";
import { ActionConfigurationType, ActionType, AssetType } from "./action-types.js";
import { DateTime, EnvironmentEnum } from "./leaf-types.js";

@ObjectType("VersionUser", { description: "Who caused it." })
export class VersionUserType {
  @Field(() => Int) id: number;
  @Field(() => String) firstName: string;
  @Field(() => String) lastName: string;
  @Field(() => String) email: string;
}

@ObjectType("VersionHead")
abstract class VersionHeadType {
  @Field(() => Int) id: number;
  @Field(() => DateTime) createdAt: string;
  @Field(() => Int, { nullable: true }) userId: number | null;
  @Field(() => VersionUserType, { nullable: true }) user: Person | null;
}

@ObjectType("ActionVersionSummary", { description: "Specification, Version snapshot: list summary." })
class VersionSummaryType extends VersionHeadType {
  @Field(() => String, { description: "create, update or pre-restore" }) action: string;
  @Field(() => String) name: string;
  @Field(() => String, { nullable: true }) description: string | null;
  @Field(() => Boolean) active: boolean;
  @Field(() => EnvironmentEnum) environment: Environment;
  @Field(() => String, { nullable: true }) frequency: string | null;
}

@ObjectType("ActionSnapshot", { description: "Specification, Version snapshot: the full configuration." })
class SnapshotType extends ActionConfigurationType {
  @Field(() => String, { description: "create, update or pre-restore" }) action: string;
  @Field(() => [String], { description: "always empty" }) functions: string[];
  @Field(() => [AssetType]) assets: Asset[];
  @Field(() => [Int], { description: "always empty" }) widgetInstanceIds: number[];
  @Field(() => Int, { nullable: true }) masterTaskId: number | null;
  @Field(() => Int, { nullable: true }) productionTaskId: number | null;
  @Field(() => String, { description: "always v3" }) actionVersion: string;
}

@ObjectType("ActionVersion", { description: "Specification, Version snapshot: full version." })
export class VersionType extends VersionHeadType {
  @Field(() => SnapshotType) data: Snapshot;
}

@ObjectType("VersionPagination", { description: "Specification, Pagination object: of version lists." })
export class VersionPaginationType {
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

@ObjectType("ActionDiff", { description: "How two states of one action differ." })
export class ActionDiffType {
  @Field(() => ID, { description: "master, production, or a version's id" }) from: Side;
  @Field(() => ID, { description: "master, production, or a version's id" }) to: Side;
  @Field(() => ActionConfigurationType, { description: "The whole of the first state." }) before: ActionInput;
  @Field(() => ActionConfigurationType, { description: "The whole of the second." }) after: ActionInput;
  @Field(() => String, { nullable: true, description: "A unified diff of the code; null when it is the same." })
  code: string | null;
}

@ObjectType("ActionChange", { description: "A change of a master or of its production copy." })
export class ActionChangeType {
  @Field(() => Boolean, { description: "At first, and after a gap: read anew what you show. All else is empty then." })
  reset: boolean;
  @Field(() => Int, { nullable: true, description: "The master's." }) id: number | null;
  @Field(() => Boolean) removed: boolean;
  @Field(() => DateTime, { nullable: true, description: "The master's as it stands now." }) updatedAt: string | null;
  @Field(() => String, { nullable: true, description: "The trail's word for it, such as appAction.v3.update." })
  type: string | null;
  @Field(() => [String], { description: "Those that an update changed." }) fields: string[];
  @Field(() => VersionUserType, { nullable: true }) user: VersionUserType | null;
}
