/** The trail of writes over GraphQL. */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, Field, Int, ObjectType, Query, Resolver } from "type-graphql";
import type { Gate } from "../../operations/access/gate.js";
import type { AuditEntry, Trail } from "../../operations/records/audit.js";
import type { RequestContext } from "../context.js";
import { PaginationType } from "./action-types.js";
import { AppId, Limit, Offset } from "./arguments.js";
import { DateTime } from "./leaf-types.js";

@ObjectType("AuditEntry", { description: "Who changed what and when: names of keys and fields, never values." })
class AuditEntryType {
  @Field(() => Int) id: number;
  @Field(() => String, { description: "What happened, for example app.settings.update." }) type: string;
  @Field(() => Int, { nullable: true }) userId: number | null;
  @Field(() => Int, { nullable: true }) credentialId: number | null;
  @Field(() => Int, { nullable: true }) actionId: number | null;
  @Field(() => GraphQLJSON, { description: "Names of keys and fields, ids: what the type of entry has to say." })
  data: unknown;
  @Field(() => DateTime) createdAt: string;
}

@ObjectType("AuditPagination")
class AuditPaginationType extends PaginationType {
  @Field(() => Boolean, {
    nullable: true,
    description: "false where there are more than 10,000, and `total` says about how many; else null.",
  })
  totalIsExact?: boolean;
  @Field(() => String, { nullable: true, description: "What `cursor` takes for the next page; null on the last one." })
  nextCursor?: string;
}

@ObjectType("AuditList")
class AuditListType {
  @Field(() => [AuditEntryType]) entries: AuditEntry[];
  @Field(() => AuditPaginationType) pagination: AuditPaginationType;
}

@Resolver()
export class TrailResolver {
  constructor(
    private readonly gate: Gate,
    private readonly trail: Trail,
  ) {}

  @Query(() => AuditListType, { description: "The app's trail, most recent first; of one action where it is named." })
  async audit(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("actionId", () => Int, { nullable: true }) actionId?: number | null,
    @Limit() limit?: number | null,
    @Offset() offset?: number | null,
    @Arg("cursor", () => String, { nullable: true }) cursor?: string | null,
  ): Promise<AuditListType> {
    await this.gate.enter(context, "readTrail", appId);
    return this.trail(appId, { actionId, limit, offset, cursor }, context.answer?.reserve);
  }
}
