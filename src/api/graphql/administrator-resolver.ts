/** Administrators of the service over GraphQL. */
import { Arg, Ctx, Int, Mutation, Query, Resolver } from "type-graphql";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { Administrator, Administrators } from "../../operations/members/administrators.js";
import type { Caller } from "../../rules/access.js";
import type { RequestContext } from "../context.js";
import { UserType } from "./app-types.js";
import { type ChangePrecondition, IfUpdatedAtArgument, toExpectedVersions } from "./if-updated-at.js";

const UserIdArgument = () => Arg("userId", () => Int, { description: "ID of the person." });

@Resolver()
export class AdministratorResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly service: Administrators,
  ) {}

  private requireAdministrator(context: RequestContext): Caller {
    const caller = this.accessChecks.requireServiceAccess(context, "manageAdministrators");
    return context.address === undefined ? caller : { ...caller, address: context.address };
  }

  @Query(() => [UserType], { description: "Lists the administrators of the service." })
  async administrators(@Ctx() context: RequestContext): Promise<Administrator[]> {
    this.requireAdministrator(context);
    return this.service.list();
  }

  @Mutation(() => [UserType], {
    description: "Makes a person with an account an administrator of the service. Returns all administrators.",
  })
  async addAdministrator(@Ctx() context: RequestContext, @UserIdArgument() userId: number): Promise<Administrator[]> {
    return this.service.add(this.requireAdministrator(context), userId);
  }

  @Mutation(() => [UserType], {
    description: "Ends a person's right to administer the service; returns the remaining administrators.",
  })
  async removeAdministrator(
    @Ctx() context: RequestContext,
    @UserIdArgument() userId: number,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<Administrator[]> {
    return this.service.remove(this.requireAdministrator(context), userId, toExpectedVersions(ifUpdatedAt));
  }
}
