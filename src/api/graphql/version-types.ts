/** GraphQL types of an action's version history and of comparisons of versions. Contains only declarations. */
import { Field, ID, Int, ObjectType } from "type-graphql";
import type { Asset, Environment } from "../../data/action-types.js";
import type { Person } from "../../data/person.js";
import type { ComparedVersionSelector } from "../../operations/actions/comparison.js";
import type { Snapshot, VersionSummary } from "../../operations/actions/versions.js";
import type { ComparedScript } from "../../rules/action-diff.js";
import type { ActionInput } from "../../rules/action-input.js";
import { ActionConfigurationType, ActionType, AssetType } from "./action-types.js";
import { DateTime, EnvironmentEnum } from "./leaf-types.js";
import { DEPRECATED_IN_FAVOR_OF_PAGE, ListPageType, PageItemsField } from "./page-types.js";

@ObjectType("VersionUser", { description: "Person who caused a change." })
export class VersionUserType {
  @Field(() => Int, { description: "ID of the person." }) id: number;
  @Field(() => String, { description: "First name." }) firstName: string;
  @Field(() => String, { description: "Last name." }) lastName: string;
  @Field(() => String, { description: "E-mail address." }) email: string;
}

@ObjectType("VersionHead", { description: "Common fields of a version in a list and of a full version." })
abstract class VersionHeadType {
  @Field(() => Int, { description: "ID of the version." }) id: number;
  @Field(() => DateTime, { description: "Time of creation." }) createdAt: string;
  @Field(() => Int, { nullable: true, description: "ID of the person who caused the version; null if no person did." })
  userId: number | null;
  @Field(() => VersionUserType, {
    nullable: true,
    description: "Person who caused the version; null if no person did.",
  })
  user: Person | null;
  @Field(() => String, {
    nullable: true,
    description: "Hash of the git commit that the version came from; null for other changes.",
  })
  commit?: string;
}

@ObjectType("ActionVersionSummary", { description: "Version of an action in a list." })
class VersionSummaryType extends VersionHeadType {
  @Field(() => String, { description: "Operation that stored the version: create, update or pre-restore." })
  action: string;
  @Field(() => String, { description: "Name of the action at the time." }) name: string;
  @Field(() => String, { nullable: true, description: "Description of the action at the time; null if it had none." })
  description: string | null;
  @Field(() => Boolean, { description: "True if the action could run." }) active: boolean;
  @Field(() => EnvironmentEnum, { description: "Environment in which the action ran." }) environment: Environment;
  @Field(() => String, {
    nullable: true,
    description: "Schedule as a cron expression of five fields; null if it had none.",
  })
  frequency: string | null;
  @Field(() => DateTime, { nullable: true, description: "Time of the last publish; null if it was never live." })
  publishedAt?: string | null;
}

@ObjectType("ActionSnapshot", { description: "Configuration of an action in a version." })
class ActionSnapshotType extends ActionConfigurationType {
  @Field(() => String, { description: "Operation that stored the version: create, update or pre-restore." })
  action: string;
  @Field(() => [String], { description: "Always empty." }) functions: string[];
  @Field(() => [AssetType], { description: "Scripts of the dependencies." }) assets: Asset[];
  @Field(() => [Int], { description: "Always empty." }) widgetInstanceIds: number[];
  @Field(() => Int, { nullable: true, description: "ID of the action's draft; null for a draft." }) masterTaskId:
    | number
    | null;
  @Field(() => Int, { nullable: true, description: "ID of the action's live version; null if it had none." })
  productionTaskId: number | null;
  @Field(() => String, { description: "Version of the action format; always v3." }) actionVersion: string;
}

@ObjectType("ActionVersion", { description: "Version of an action with its configuration." })
export class ActionVersionType extends VersionHeadType {
  @Field(() => ActionSnapshotType, { description: "Configuration of the action." }) data: Snapshot;
}

@ObjectType("VersionPagination", { description: "Position of a page in a list of versions." })
export class ActionVersionPaginationType {
  @Field(() => Int, { description: "Maximum number of versions on this page." }) limit: number;
  @Field(() => Int, { description: "Number of versions before this page." }) offset: number;
  @Field(() => Int, { description: "Number of versions on all pages." }) total: number;
  @Field(() => Boolean, { description: "True if versions follow this page." }) hasMore: boolean;
}

@ObjectType("ActionVersionList", { implements: ListPageType, description: "Page of versions." })
export class ActionVersionListType {
  @PageItemsField(() => [VersionSummaryType], "Versions on this page.") versions: VersionSummary[];
  @Field(() => ActionVersionPaginationType, {
    ...DEPRECATED_IN_FAVOR_OF_PAGE,
    description: "Position of this page in the list.",
  })
  pagination: ActionVersionPaginationType;
}

@ObjectType("RestoredActionState", { description: "Draft of an action after a restore." })
class RestoredActionType extends ActionType {
  @Field(() => Boolean, { description: "True if the action has a live version." }) isPublished: boolean;
}

@ObjectType("RestoredAction", { description: "Result of a restore." })
export class ActionRestoreResultType {
  @Field(() => RestoredActionType, { description: "Draft after the restore." }) action: RestoredActionType;
  @Field(() => Int, { description: "ID of the version that was restored." }) restoredFromVersionId: number;
  @Field(() => Int, {
    nullable: true,
    description:
      "ID of the version with the state before the restore, which undoes it; null if it could not be stored.",
  })
  preRestoreVersionId: number | null;
}

@ObjectType("ComparedScript", { description: "Stored script of a package in one of two compared states." })
class ComparedScriptType {
  @Field(() => String, { nullable: true, description: "Version of the package; null for a script of a URL." })
  version?: string;
  @Field(() => String, { description: "Hash of the script, as in the attribute `integrity` of HTML." })
  integrity: string;
}

@ObjectType("ScriptChange", { description: "Script of a package that differs between two states of an action." })
export class ScriptChangeType {
  @Field(() => String, { description: "Name of the dependency." }) name: string;
  @Field(() => ComparedScriptType, {
    nullable: true,
    description: "Script in the first state; null if that state does not have it.",
  })
  before: ComparedScript | null;
  @Field(() => ComparedScriptType, {
    nullable: true,
    description: "Script in the second state; null if that state does not have it.",
  })
  after: ComparedScript | null;
}

@ObjectType("ActionDiff", { description: "Difference between two states of an action." })
export class ActionDiffType {
  @Field(() => ID, {
    description: "First state: master for the draft, production for the live version, or the ID of a version.",
  })
  from: ComparedVersionSelector;
  @Field(() => ID, {
    description: "Second state: master for the draft, production for the live version, or the ID of a version.",
  })
  to: ComparedVersionSelector;
  @Field(() => ActionConfigurationType, { description: "Configuration in the first state." }) before: ActionInput;
  @Field(() => ActionConfigurationType, { description: "Configuration in the second state." }) after: ActionInput;
  @Field(() => String, { nullable: true, description: "Unified diff of the code; null if it is equal." })
  code: string | null;
}

@ObjectType("ActionChange", { description: "Change of an action's draft or live version." })
export class ActionChangeType {
  @Field(() => Boolean, {
    description:
      "True at the start and after a gap: the client must read the actions again, and all other fields are empty.",
  })
  reset: boolean;
  @Field(() => Int, { nullable: true, description: "ID of the action's draft; null for a reset." }) id: number | null;
  @Field(() => Boolean, { description: "True if the action was deleted." }) removed: boolean;
  @Field(() => DateTime, {
    nullable: true,
    description: "Current `updatedAt` of the draft; null for a reset or a deleted action.",
  })
  updatedAt: string | null;
  @Field(() => String, {
    nullable: true,
    description: "Operation in the audit log, for example appAction.v3.update; null for a reset.",
  })
  type: string | null;
  @Field(() => [String], { description: "Names of the properties that an update changed." }) fields: string[];
  @Field(() => VersionUserType, { nullable: true, description: "Person who made the change; null if no person did." })
  user: VersionUserType | null;
}
