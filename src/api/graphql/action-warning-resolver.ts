/** GraphQL field with the warnings of an action: settings of the action that have no effect. */
import { Field, FieldResolver, ObjectType, Resolver, Root } from "type-graphql";
import type { Action } from "../../operations/actions/action-rows.js";
import { type ActionWarning, listActionWarnings } from "../../rules/action-warnings.js";
import { ActionType } from "./action-types.js";

@ObjectType("Warning", { description: "Problem of a valid action that will not work as its configuration suggests." })
class ActionWarningType implements ActionWarning {
  @Field(() => String, { description: "Path of the field that causes the problem." }) path: string;
  @Field(() => String, { description: "Problem and its solution." }) message: string;
}

@Resolver(() => ActionType)
export class ActionWarningResolver {
  @FieldResolver(() => [ActionWarningType], { description: "Problems in the configuration; empty if there are none." })
  warnings(@Root() action: Action): ActionWarning[] {
    return listActionWarnings(action);
  }
}
