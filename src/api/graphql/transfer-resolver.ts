/** Export and import over GraphQL. Each method: the gate, then one call. */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, Field, Int, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import type { Gate } from "../../operations/access/gate.js";
import type { ImportFault, Transfer, TransferDocument } from "../../operations/actions/transfer.js";
import type { RequestContext } from "../context.js";

@ObjectType("ImportedUpdate")
class ImportedUpdateType {
  @Field(() => String) name: string;
  @Field(() => [String], { description: "The fields that change." }) fields: string[];
}

@ObjectType("ImportReport", { description: "What an import did or, in a dry run, would do; actions by name." })
class ImportReportType {
  @Field(() => Boolean) dryRun: boolean;
  @Field(() => [String]) created: string[];
  @Field(() => [ImportedUpdateType]) updated: ImportedUpdateType[];
  @Field(() => [String]) unchanged: string[];
  @Field(() => GraphQLJSON, { description: "[{index, name, status, error}], of a dry run" }) faults: ImportFault[];
}

@Resolver()
export class TransferResolver {
  constructor(
    private readonly gate: Gate,
    private readonly service: Transfer,
  ) {}

  @Query(() => GraphQLJSON, { description: "{format, actions}: all master actions without ids and times, by name." })
  async exportActions(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
  ): Promise<TransferDocument> {
    await this.gate.enter(context, "exportActions", appId);
    return this.service.export(appId);
  }

  @Mutation(() => ImportReportType, {
    description: "Creates and updates actions by name: the whole document, or nothing where one action is at fault.",
  })
  async importActions(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("document", () => GraphQLJSON, { nullable: true }) document: unknown,
    @Arg("dryRun", () => Boolean, { defaultValue: false }) dryRun: boolean,
  ): Promise<ImportReportType> {
    const caller = await this.gate.enter(context, "importActions", appId);
    return this.service.import(caller, appId, document, dryRun);
  }
}
