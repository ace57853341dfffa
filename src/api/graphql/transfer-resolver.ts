/** Export and import over GraphQL. Each method: the gate, then one call. */
import { Arg, Ctx, Field, Int, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import type { Gate } from "../../operations/access/gate.js";
import type { ImportFault, Transfer, TransferDocument } from "../../operations/actions/transfer.js";
import type { ActionInput } from "../../rules/action-input.js";
import type { RequestContext } from "../context.js";
import { ImportDocumentInput } from "./action-inputs.js";
import { ActionConfigurationType } from "./action-types.js";
import { AppId } from "./arguments.js";
import { ActionFieldEnum } from "./leaf-types.js";

@ObjectType("ExportDocument", { description: "An app's master actions by name, without ids and times." })
class ExportDocumentType {
  @Field(() => String) format: string;
  @Field(() => [ActionConfigurationType]) actions: ActionInput[];
}

@ObjectType("ImportedUpdate")
class ImportedUpdateType {
  @Field(() => String) name: string;
  @Field(() => [ActionFieldEnum], { description: "Those that change." }) fields: string[];
}

@ObjectType("ImportFault")
class ImportFaultType {
  @Field(() => Int, { description: "Its place in the document, from 0." }) index: number;
  @Field(() => String, { nullable: true }) name: string | null;
  @Field(() => String, { description: "A status of the catalogue of errors." }) status: string;
  @Field(() => String) error: string;
}

@ObjectType("ImportReport", { description: "What an import did or, in a dry run, would do; actions by name." })
class ImportReportType {
  @Field(() => Boolean) dryRun: boolean;
  @Field(() => [String]) created: string[];
  @Field(() => [ImportedUpdateType]) updated: ImportedUpdateType[];
  @Field(() => [String]) unchanged: string[];
  @Field(() => [ImportFaultType], { description: "Of a dry run; else a fault refuses all." }) faults: ImportFault[];
}

@Resolver()
export class TransferResolver {
  constructor(
    private readonly gate: Gate,
    private readonly service: Transfer,
  ) {}

  @Query(() => ExportDocumentType)
  async exportActions(@Ctx() context: RequestContext, @AppId() appId: number): Promise<TransferDocument> {
    await this.gate.enter(context, "exportActions", appId);
    return this.service.export(appId, context.answer?.reserve);
  }

  @Mutation(() => ImportReportType, {
    description: "Creates and updates actions by name: the whole document, or nothing where one action is at fault.",
  })
  async importActions(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("document", () => ImportDocumentInput, { nullable: true }) document: unknown,
    @Arg("dryRun", () => Boolean, { defaultValue: false }) dryRun: boolean,
  ): Promise<ImportReportType> {
    const caller = await this.gate.enter(context, "importActions", appId);
    return this.service.import(caller, appId, document, dryRun);
  }
}
