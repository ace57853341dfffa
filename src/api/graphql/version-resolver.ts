/** Version history over GraphQL: list, retrieve, restore, compare. Each method checks the caller's access and then calls one operation. */
import { Arg, Ctx, FieldResolver, ID, Int, Mutation, Query, Resolver, Root } from "type-graphql";
import { VERSIONS_PER_PAGE_DEFAULT, VERSIONS_PER_PAGE_MAX } from "../../limits.js";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { ActionComparer, ActionComparison } from "../../operations/actions/comparison.js";
import type { DraftRestoreResult, DraftRestorer } from "../../operations/actions/restoring.js";
import type { ActionVersions, Version } from "../../operations/actions/versions.js";
import type { TriggerEndpoints } from "../../operations/http/endpoints.js";
import { listChangedScripts, type ScriptChange } from "../../rules/action-diff.js";
import type { RequestContext } from "../context.js";
import { AppIdArgument, Limit, Offset } from "./arguments.js";
import { type ChangePrecondition, IfUpdatedAtArgument, toExpectedVersions } from "./if-updated-at.js";
import { ActionFieldEnum } from "./leaf-types.js";
import {
  ActionDiffType,
  ActionRestoreResultType,
  ActionVersionListType,
  ActionVersionType,
  ScriptChangeType,
} from "./version-types.js";

@Resolver(() => ActionDiffType)
export class ActionVersionResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly services: {
      versions: ActionVersions;
      restorer: DraftRestorer;
      comparer: ActionComparer;
      endpoints: TriggerEndpoints;
    },
  ) {}

  @Query(() => ActionVersionListType, {
    description:
      "Lists the versions of an action, newest first. With `published`, lists only the versions that were live, the last published first.",
  })
  async actionVersions(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("actionId", () => Int, { description: "ID of the action's draft." }) actionId: number,
    @Limit(VERSIONS_PER_PAGE_DEFAULT, VERSIONS_PER_PAGE_MAX) limit?: number,
    @Offset() offset?: number,
    @Arg("published", () => Boolean, {
      nullable: true,
      description: "True to list only the versions that were live, the last published first; false by default.",
    })
    published?: boolean | null,
  ): Promise<ActionVersionListType> {
    await this.accessChecks.requireAppAccess(context, "listVersions", appId);
    return this.services.versions.list(appId, actionId, { limit, offset, published });
  }

  @Query(() => ActionVersionType, { description: "Returns a version of an action with its configuration." })
  async actionVersion(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("actionId", () => Int, { description: "ID of the action's draft." }) actionId: number,
    @Arg("versionId", () => Int, { description: "ID of the version." }) versionId: number,
  ): Promise<Version> {
    await this.accessChecks.requireAppAccess(context, "getVersion", appId);
    return this.services.versions.get(appId, actionId, versionId);
  }

  @Mutation(() => ActionRestoreResultType, {
    description: "Stores the current draft as a version, then restores the draft from an earlier version.",
  })
  async restoreActionVersion(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("actionId", () => Int, { description: "ID of the action's draft." }) actionId: number,
    @Arg("versionId", () => Int, { description: "ID of the version." }) versionId: number,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<DraftRestoreResult> {
    const caller = await this.accessChecks.requireAppAccess(context, "restoreVersion", appId);
    const target = { appId, id: actionId, precondition: toExpectedVersions(ifUpdatedAt) };
    const restoredAction = await this.services.restorer.restore(caller, target, versionId);
    return { ...restoredAction, action: await this.services.endpoints.addUrlsToOne(caller, restoredAction.action) };
  }

  @Query(() => ActionDiffType, {
    description: "Compares a version with the draft, the live version or another version.",
  })
  async actionVersionDiff(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("actionId", () => Int, { description: "ID of the action's draft." }) actionId: number,
    @Arg("versionId", () => Int, { description: "ID of the version from which the comparison starts." })
    versionId: number,
    @Arg("against", () => ID, {
      nullable: true,
      description:
        "Version to compare with: `master` (the draft), `production` (the live version) or the ID of a version; `master` by default.",
    })
    against?: string | null,
  ): Promise<ActionComparison> {
    await this.accessChecks.requireAppAccess(context, "compareVersions", appId);
    return this.services.comparer.compareVersion(appId, actionId, versionId, against ?? "master");
  }

  @Query(() => ActionDiffType, { description: "Compares the live version of an action with its draft." })
  async actionDiff(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("actionId", () => Int, { description: "ID of the action's draft." }) actionId: number,
  ): Promise<ActionComparison> {
    await this.accessChecks.requireAppAccess(context, "compareVersions", appId);
    return this.services.comparer.compareLive(appId, actionId);
  }

  @FieldResolver(() => [ActionFieldEnum], { description: "Properties that differ, without `code`." })
  fields(@Root() { changes }: ActionComparison): string[] {
    return changes.map(({ field }) => field);
  }

  @FieldResolver(() => [ScriptChangeType], {
    description: "Scripts of packages that differ between the two states; empty if `fields` has no `assets`.",
  })
  scripts(@Root() { changes }: ActionComparison): ScriptChange[] {
    return listChangedScripts(changes);
  }
}
