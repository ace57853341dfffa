/** Help for authors who edit a draft, over GraphQL: sample payloads, diagnostics of the code, types of npm packages. */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, Field, Int, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { PayloadPreset, PayloadPresets } from "../../operations/actions/presets.js";
import type { CodeProblem, CodeProblemFinder } from "../../operations/actions/problems.js";
import type { StoredScripts } from "../../operations/packages/kept-scripts.js";
import type { RequestContext } from "../context.js";
import { AppIdArgument } from "./arguments.js";
import { type ChangePrecondition, IfUpdatedAtArgument, toExpectedVersions } from "./if-updated-at.js";
import { DateTime } from "./leaf-types.js";

@ObjectType("PayloadPreset", { description: "Named payload that is stored with an action for test runs." })
class PayloadPresetType {
  @Field(() => String, { description: "Name of the preset." }) name: string;
  @Field(() => GraphQLJSON, { description: "Payload of a test run." }) payload: unknown;
  @Field(() => DateTime, { description: "Time of the last change." }) updatedAt: string;
}

@ObjectType("CodeProblem", { description: "Problem in code that prevents a save, with its position." })
class CodeProblemType implements CodeProblem {
  @Field(() => String, { description: "Problem and its solution." }) message: string;
  @Field(() => Int, { description: "Line of the problem, counted from 1." }) line: number;
  @Field(() => Int, { description: "Column of the problem, counted from 1." }) column: number;
  @Field(() => String, {
    nullable: true,
    description: "Name of the package that solves the problem as a dependency; null if there is none.",
  })
  dependency: string | null;
}

@Resolver()
export class CodeEditorResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly presets: PayloadPresets,
    private readonly problemFinder: CodeProblemFinder,
    private readonly scripts: Pick<StoredScripts, "readDeclarations">,
  ) {}

  @Query(() => [PayloadPresetType], {
    description: "Lists the payload presets (payloads that people store for tests) of an action, sorted by name.",
  })
  async payloadPresets(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("actionId", () => Int, { description: "ID of the action's draft." }) actionId: number,
  ): Promise<PayloadPreset[]> {
    await this.accessChecks.requireAppAccess(context, "readPresets", appId);
    return this.presets.list(appId, actionId);
  }

  @Mutation(() => [PayloadPresetType], {
    description:
      "Stores a payload preset of an action. Replaces the action's preset of the same name, if there is one. Returns all presets of the action.",
  })
  async savePayloadPreset(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("actionId", () => Int, { description: "ID of the action's draft." }) actionId: number,
    @Arg("name", () => String, { description: "Name of the preset." }) name: unknown,
    @Arg("payload", () => GraphQLJSON, { nullable: true, description: "Payload of a test run." }) payload: unknown,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<PayloadPreset[]> {
    const caller = await this.accessChecks.requireAppAccess(context, "writePresets", appId);
    return this.presets.save(caller, appId, actionId, name, payload, toExpectedVersions(ifUpdatedAt));
  }

  @Mutation(() => [PayloadPresetType], {
    description: "Deletes a payload preset of an action. Returns the remaining presets of the action.",
  })
  async deletePayloadPreset(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("actionId", () => Int, { description: "ID of the action's draft." }) actionId: number,
    @Arg("name", () => String, { description: "Name of the preset." }) name: unknown,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<PayloadPreset[]> {
    const caller = await this.accessChecks.requireAppAccess(context, "writePresets", appId);
    return this.presets.remove(caller, appId, actionId, name, toExpectedVersions(ifUpdatedAt));
  }

  @Query(() => [CodeProblemType], {
    description:
      "Checks code without saving it, and returns the problems that would prevent a save. If the code has errors, the result is the first error. Otherwise, it is a list of the packages that the code uses but `dependencies` does not list.",
  })
  async codeProblems(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("code", () => String, { description: "JavaScript of an action." }) code: unknown,
    @Arg("dependencies", () => [String], {
      nullable: true,
      description: "Packages that the code uses, as npm package names or https URLs; none by default.",
    })
    dependencies: string[] | null = [],
  ): Promise<CodeProblem[]> {
    await this.accessChecks.requireAppAccess(context, "checkCode", appId);
    return this.problemFinder(appId, code, dependencies ?? []);
  }

  @Query(() => [String], {
    nullable: true,
    description:
      "Returns the TypeScript declarations of an npm package, as files that import each other by `./<index>`. The first file exports the type `Value`: the type of the global variable that contains the package. Null if the package has no declarations, or if no action of the app uses it.",
  })
  async packageDeclarations(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("integrity", () => String, {
      description:
        "Integrity hash of the package's script: the field `integrity` of an item in the list `assets` of an action.",
    })
    integrity: unknown,
  ): Promise<string[] | null> {
    await this.accessChecks.requireAppAccess(context, "readDeclarations", appId);
    return this.scripts.readDeclarations(appId, integrity);
  }
}
