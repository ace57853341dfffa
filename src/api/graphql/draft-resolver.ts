/** What helps an author while an action is written, over GraphQL: payloads to try it with, what the service would refuse, types of packages. */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, Field, Int, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import type { Gate } from "../../operations/access/gate.js";
import type { PayloadPreset, PayloadPresets } from "../../operations/actions/presets.js";
import type { CodeProblem, CodeProblems } from "../../operations/actions/problems.js";
import type { KeptScripts } from "../../operations/packages/kept-scripts.js";
import type { RequestContext } from "../context.js";
import { AppId } from "./arguments.js";
import { IfUpdatedAt, preconditionOf, type StateGiven } from "./if-updated-at.js";
import { DateTime } from "./leaf-types.js";

@ObjectType("PayloadPreset", { description: "A payload kept with an action by name, to try it with." })
class PayloadPresetType {
  @Field(() => String) name: string;
  @Field(() => GraphQLJSON) payload: unknown;
  @Field(() => DateTime) updatedAt: string;
}

@ObjectType("CodeProblem", { description: "What a save would be refused for, and where; counted from 1." })
class CodeProblemType implements CodeProblem {
  @Field(() => String) message: string;
  @Field(() => Int) line: number;
  @Field(() => Int) column: number;
  @Field(() => String, { nullable: true, description: "The package that would mend it." }) dependency: string | null;
}

@Resolver()
export class DraftResolver {
  constructor(
    private readonly gate: Gate,
    private readonly presets: PayloadPresets,
    private readonly problems: CodeProblems,
    private readonly scripts: Pick<KeptScripts, "declarations">,
  ) {}

  @Query(() => [PayloadPresetType], { description: "By name; of the master of that id." })
  async payloadPresets(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("actionId", () => Int) actionId: number,
  ): Promise<PayloadPreset[]> {
    await this.gate.enter(context, "readPresets", appId);
    return this.presets.list(appId, actionId);
  }

  @Mutation(() => [PayloadPresetType], {
    description: "Keeps a payload under a name, in the place of what stands there.",
  })
  async savePayloadPreset(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("actionId", () => Int) actionId: number,
    @Arg("name", () => String) name: unknown,
    @Arg("payload", () => GraphQLJSON, { nullable: true }) payload: unknown,
    @IfUpdatedAt() ifUpdatedAt?: StateGiven,
  ): Promise<PayloadPreset[]> {
    const caller = await this.gate.enter(context, "writePresets", appId);
    return this.presets.save(caller, appId, actionId, name, payload, preconditionOf(ifUpdatedAt));
  }

  @Mutation(() => [PayloadPresetType])
  async deletePayloadPreset(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("actionId", () => Int) actionId: number,
    @Arg("name", () => String) name: unknown,
    @IfUpdatedAt() ifUpdatedAt?: StateGiven,
  ): Promise<PayloadPreset[]> {
    await this.gate.enter(context, "writePresets", appId);
    return this.presets.remove(appId, actionId, name, preconditionOf(ifUpdatedAt));
  }

  @Query(() => [CodeProblemType], {
    description: "What a save of this code would be refused for: its first fault, or each package that it lacks.",
  })
  async codeProblems(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("code", () => String) code: unknown,
    @Arg("dependencies", () => [String], { nullable: true }) dependencies: string[] | null = [],
  ): Promise<CodeProblem[]> {
    await this.gate.enter(context, "checkCode", appId);
    return this.problems(appId, code, dependencies ?? []);
  }

  @Query(() => [String], {
    nullable: true,
    description:
      "What the npm package of that integrity declares for TypeScript: files that name each other as ./<index>, the first of which exports the type Value of its global. Null where it declares nothing, or no action of the app uses it.",
  })
  async packageDeclarations(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("integrity", () => String, { description: "Of the asset." }) integrity: unknown,
  ): Promise<string[] | null> {
    await this.gate.enter(context, "readDeclarations", appId);
    return this.scripts.declarations(appId, integrity);
  }
}
