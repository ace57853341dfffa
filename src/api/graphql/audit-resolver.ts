/** The audit log over GraphQL. */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, Field, Int, ObjectType, Query, Resolver } from "type-graphql";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { AuditEntry, ListAuditLog } from "../../operations/records/audit.js";
import type { RequestContext } from "../context.js";
import { PaginationType } from "./action-types.js";
import { AppIdArgument, Limit, Offset } from "./arguments.js";
import { DateTime } from "./leaf-types.js";
import { DEPRECATED_IN_FAVOR_OF_PAGE, ListPageType, PageItemsField } from "./page-types.js";

@ObjectType("AuditEntry", {
  description: "Entry of the audit log. It contains names of keys and fields, never their values.",
})
export class AuditEntryType {
  @Field(() => Int, { description: "ID of the entry." }) id: number;
  @Field(() => String, { description: "Operation, for example app.settings.update." }) type: string;
  @Field(() => Int, {
    nullable: true,
    description: "ID of the person who performed the operation; null if no person did.",
  })
  userId: number | null;
  @Field(() => Int, {
    nullable: true,
    description: "ID of the credential that performed the operation; null if there is none.",
  })
  credentialId: number | null;
  @Field(() => Int, {
    nullable: true,
    description: "ID of the action that the operation concerns; null if it concerns none.",
  })
  actionId: number | null;
  @Field(() => GraphQLJSON, {
    description: "Details of the operation, an object with names of keys, names of fields and IDs.",
    deprecationReason: "Use `details`.",
  })
  data: unknown;
  @Field(() => DateTime, { description: "Time of the operation." }) createdAt: string;
}

@ObjectType("AuditPagination", { description: "Position of a page in the audit log." })
class AuditPaginationType extends PaginationType {
  @Field(() => Boolean, {
    nullable: true,
    description: "False if more than 10,000 entries match and `total` is an estimate; null otherwise.",
  })
  totalIsExact?: boolean;
  @Field(() => String, { nullable: true, description: "Value of `cursor` for the next page; null on the last page." })
  nextCursor?: string;
}

@ObjectType("AuditList", { implements: ListPageType, description: "Page of the audit log." })
class AuditListType {
  @PageItemsField(() => [AuditEntryType], "Entries on this page.") entries: AuditEntry[];
  @Field(() => AuditPaginationType, {
    ...DEPRECATED_IN_FAVOR_OF_PAGE,
    description: "Position of this page in the log.",
  })
  pagination: AuditPaginationType;
}

@Resolver()
export class AuditLogResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly listAuditLog: ListAuditLog,
  ) {}

  @Query(() => AuditListType, { description: "Lists the audit log of the app, newest first." })
  async audit(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("actionId", () => Int, {
      nullable: true,
      description: "ID of the action whose entries to return; all entries by default.",
    })
    actionId?: number | null,
    @Limit() limit?: number | null,
    @Offset() offset?: number | null,
    @Arg("cursor", () => String, {
      nullable: true,
      description: "The `nextCursor` of the previous response, to continue the list.",
    })
    cursor?: string | null,
  ): Promise<AuditListType> {
    await this.accessChecks.requireAppAccess(context, "readAuditTrail", appId);
    return this.listAuditLog(appId, { actionId, limit, offset, cursor }, context.responseBudget?.reserveBytes);
  }
}
