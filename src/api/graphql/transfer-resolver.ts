/** GraphQL resolver that exports and imports actions. Each method checks the caller's access and then calls one operation. */
import { Arg, Ctx, Field, Int, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import type { ActionImportFault } from "../../errors.js";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { ActionTransfer, ActionTransferDocument } from "../../operations/actions/transfer.js";
import type { ActionInput } from "../../rules/action-input.js";
import type { RequestContext } from "../context.js";
import { ActionImportDocumentInput } from "./action-inputs.js";
import { ActionConfigurationType } from "./action-types.js";
import { AppIdArgument } from "./arguments.js";
import { ActionFieldEnum } from "./leaf-types.js";

@ObjectType("ExportDocument", { description: "Drafts of an app's actions by name, without IDs and times." })
class ExportDocumentType {
  @Field(() => String, { description: "Format of the document: svc-app-actions/1." }) format: string;
  @Field(() => [ActionConfigurationType], { description: "Configurations of the actions." }) actions: ActionInput[];
}

@ObjectType("ImportedUpdate", { description: "Action that an import updates." })
class ImportedUpdateType {
  @Field(() => String, { description: "Name of the action." }) name: string;
  @Field(() => [ActionFieldEnum], { description: "Properties that change." }) fields: string[];
}

@ObjectType("ImportFault", { description: "Action that cannot be imported." })
class ImportFaultType {
  @Field(() => Int, { description: "Index of the action in the document, counted from 0." }) index: number;
  @Field(() => String, { nullable: true, description: "Name of the action; null if it has no valid name." }) name:
    | string
    | null;
  @Field(() => String, { description: "Status code of the error." }) status: string;
  @Field(() => String, { description: "Message of the error." }) error: string;
}

@ObjectType("ImportReport", { description: "Result of an import, or of its dry run." })
class ImportReportType {
  @Field(() => Boolean, { description: "True if nothing was written." }) dryRun: boolean;
  @Field(() => [String], { description: "Names of the created actions." }) created: string[];
  @Field(() => [ImportedUpdateType], { description: "Updated actions." }) updated: ImportedUpdateType[];
  @Field(() => [String], { description: "Names of the unchanged actions." }) unchanged: string[];
  @Field(() => [ImportFaultType], {
    description: "Actions that cannot be imported, for a dry run; other imports are rejected instead.",
  })
  faults: ActionImportFault[];
}

@Resolver()
export class ActionTransferResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly service: ActionTransfer,
  ) {}

  @Query(() => ExportDocumentType, { description: "Exports the drafts of all actions of the app." })
  async exportActions(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<ActionTransferDocument> {
    await this.accessChecks.requireAppAccess(context, "exportActions", appId);
    return this.service.export(appId, context.responseBudget?.reserveBytes);
  }

  @Mutation(() => ImportReportType, {
    description:
      "Creates and updates actions in one transaction. An action with the name of an existing action updates this action. If one action is invalid, changes nothing.",
  })
  async importActions(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("document", () => ActionImportDocumentInput, {
      nullable: true,
      description: "Document that `exportActions` returned.",
    })
    document: unknown,
    @Arg("dryRun", () => Boolean, {
      defaultValue: false,
      description: "True to report the changes without writing them; false by default.",
    })
    dryRun: boolean,
  ): Promise<ImportReportType> {
    const caller = await this.accessChecks.requireAppAccess(context, "importActions", appId);
    return this.service.import(caller, appId, document, dryRun);
  }
}
