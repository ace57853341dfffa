/** What an action does not do though it seems to, beside each action over GraphQL. */
import { Field, FieldResolver, ObjectType, Resolver, Root } from "type-graphql";
import type { Action } from "../../operations/actions/action-rows.js";
import { actionWarnings, type Warning } from "../../rules/action-warnings.js";
import { ActionType } from "./action-types.js";

@ObjectType("Warning", { description: "A save that works but will not do what it seems to." })
class WarningType implements Warning {
  @Field(() => String, { description: "The field, by its path." }) path: string;
  @Field(() => String, { description: "The problem, and what to do." }) message: string;
}

@Resolver(() => ActionType)
export class ActionWarningResolver {
  @FieldResolver(() => [WarningType], { description: "Empty if the action does what it says." })
  warnings(@Root() action: Action): Warning[] {
    return actionWarnings(action);
  }
}
