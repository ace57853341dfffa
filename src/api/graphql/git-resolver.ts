/** GraphQL resolver: git connections. Each method checks the caller's access and then calls one operation. */
import { Arg, Ctx, Field, InputType, Int, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type {
  GitConnection,
  GitConnectionChange,
  GitConnections,
  LastGitPull,
} from "../../operations/git/git-connections.js";
import type { GitPull, GitPulls } from "../../operations/git/git-pulls.js";
import type { ManifestPlan } from "../../operations/manifest/manifests.js";
import type { GitProvider } from "../../rules/git-input.js";
import type { RequestContext } from "../context.js";
import { AppIdArgument } from "./arguments.js";
import { type ChangePrecondition, IfUpdatedAtArgument, toExpectedVersions } from "./if-updated-at.js";
import { DateTime } from "./leaf-types.js";
import { ManifestPlanType } from "./manifest-resolver.js";

@ObjectType("GitLastPull", { description: "Outcome of the last pull of a repository." })
class GitLastPullType implements LastGitPull {
  @Field(() => String, { description: "Branch or tag that was pulled, such as refs/heads/main." }) ref: string;
  @Field(() => String, { nullable: true, description: "Hash of the commit; null if the repository could not be read." })
  commit: string | null;
  @Field(() => [String], { description: "Names of the actions that a tag published." }) published: string[];
  @Field(() => String, { nullable: true, description: "Reason why the pull failed; null if it succeeded." })
  error: string | null;
  @Field(() => DateTime, { description: "Time of the pull." }) at: string;
}

@ObjectType("GitConnection", { description: "Git repository from which an app takes its definitions." })
class GitConnectionType implements GitConnection {
  @Field(() => String, { description: "Kind of the git server: github, gitlab or gitea." }) provider: GitProvider;
  @Field(() => String, { description: "URL of the repository." }) url: string;
  @Field(() => String, { description: "Branch whose commits become drafts." }) branch: string;
  @Field(() => String, { description: "Folder of the project in the repository; empty for the root." }) folder: string;
  @Field(() => String, {
    nullable: true,
    description: "Pattern of the tags that publish actions, with * for any characters; null if no tag does.",
  })
  tagPattern: string | null;
  @Field(() => Boolean, { description: "True if a pull removes parts of the app that the repository does not have." })
  prune: boolean;
  @Field(() => String, { description: "User name that is sent with the token." }) username: string;
  @Field(() => Boolean, { description: "True if a token is stored; its value cannot be read." }) hasToken: boolean;
  @Field(() => String, { description: "URL that receives the git server's webhook." }) webhookUrl: string;
  @Field(() => Int, {
    nullable: true,
    description: "ID of the person who connected it, and whose rights a pull needs.",
  })
  userId: number | null;
  @Field(() => GitLastPullType, { nullable: true, description: "Outcome of the last pull; null before the first." })
  lastPull: LastGitPull | null;
  @Field(() => DateTime, { description: "Time of the last change of the connection." }) updatedAt: string;
}

@ObjectType("GitConnectionChange", { description: "Git connection after a change." })
class GitConnectionChangeType implements GitConnectionChange {
  @Field(() => GitConnectionType, { description: "The connection." }) git: GitConnection;
  @Field(() => String, {
    nullable: true,
    description: "Secret of the webhook, if it is new; it cannot be read again. Null if it is unchanged.",
  })
  webhookSecret: string | null;
}

@ObjectType("GitPull", { description: "Result of a pull, or of its plan." })
class GitPullType implements GitPull {
  @Field(() => String, { description: "Branch or tag that was pulled." }) ref: string;
  @Field(() => String, { description: "Hash of the commit." }) commit: string;
  @Field(() => ManifestPlanType, { description: "Differences that were found or applied." }) plan: ManifestPlan;
  @Field(() => [String], { description: "Names of the actions that a tag published." }) published: string[];
}

@InputType("GitInput", { description: "Git repository to connect." })
class GitInputType {
  @Field(() => String, { nullable: true, description: "Kind of the git server: github, gitlab or gitea; required." })
  provider?: string;
  @Field(() => String, { nullable: true, description: "The https URL of the repository; required." }) url?: string;
  @Field(() => String, { nullable: true, description: "Branch whose commits become drafts; main by default." })
  branch?: string;
  @Field(() => String, { nullable: true, description: "Folder of the project in the repository; the root by default." })
  folder?: string;
  @Field(() => String, {
    nullable: true,
    description:
      "Pattern of the tags that publish actions, such as v*, with * for any characters. By default null: no tag does.",
  })
  tagPattern?: string | null;
  @Field(() => Boolean, {
    nullable: true,
    description: "True to remove parts of the app that the repository does not have; false by default.",
  })
  prune?: boolean;
  @Field(() => String, { nullable: true, description: "User name that is sent with the token; git by default." })
  username?: string;
  @Field(() => String, {
    nullable: true,
    description:
      "Access token that can read the repository. Null removes the stored token; if omitted, the stored token is kept.",
  })
  token?: string | null;
  @Field(() => Boolean, { nullable: true, description: "True to replace the secret of the webhook; false by default." })
  newSecret?: boolean;
}

@Resolver()
export class GitResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly service: { connections: GitConnections; pulls: GitPulls },
  ) {}

  @Query(() => GitConnectionType, {
    nullable: true,
    description: "Returns the git repository of the app; null if none is connected.",
  })
  async gitConnection(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<GitConnection | null> {
    await this.accessChecks.requireAppAccess(context, "readGit", appId);
    return this.service.connections.get(appId);
  }

  @Mutation(() => GitConnectionChangeType, {
    description: "Connects a git repository to the app, or changes the connection.",
  })
  async connectGit(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("data", () => GitInputType, { description: "The repository." }) data: unknown,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<GitConnectionChange> {
    const caller = await this.accessChecks.requireAppAccess(context, "writeGit", appId);
    const precondition = toExpectedVersions(ifUpdatedAt ?? null);
    return this.service.connections.connect(caller, { appId, precondition }, data);
  }

  @Mutation(() => Boolean, {
    description: "Disconnects the app from its git repository. Definitions and versions stay.",
  })
  async disconnectGit(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<boolean> {
    const caller = await this.accessChecks.requireAppAccess(context, "writeGit", appId);
    await this.service.connections.disconnect(caller, { appId, precondition: toExpectedVersions(ifUpdatedAt ?? null) });
    return true;
  }

  @Mutation(() => GitPullType, {
    description:
      "Pulls the app's git repository: applies the definitions of the branch or tag to the app. If one definition is invalid, applies none. For a tag, also publishes the actions that differ from their live version.",
  })
  async pullGit(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("ref", () => String, {
      nullable: true,
      description: "Branch or tag of the connection, such as refs/tags/v1; the branch by default.",
    })
    ref: unknown,
    @Arg("plan", () => Boolean, {
      defaultValue: false,
      description: "True to report the differences without applying them; false by default.",
    })
    plan: boolean,
    @Arg("commit", () => String, {
      nullable: true,
      description: "Hash of the commit that was reviewed: the pull fails for another one. Any by default.",
    })
    commit?: unknown,
  ): Promise<GitPull> {
    const caller = await this.accessChecks.requireAppAccess(context, "pullGit", appId);
    const checkPermission = (operation: Parameters<AccessChecks["recheck"]>[1]) =>
      this.accessChecks.recheck(caller, operation, appId);
    return this.service.pulls.pull(caller, { ref, commit }, { appId, isPlan: plan, checkPermission });
  }
}
