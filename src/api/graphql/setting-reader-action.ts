/** GraphQL type of an action whose code reads a setting. */
import { Field, Int, ObjectType } from "type-graphql";

@ObjectType("SettingReader", { description: "Action whose code contains a setting key." })
export class SettingReaderActionType {
  @Field(() => Int, { description: "ID of the action's draft." }) id: number;
  @Field(() => String, { description: "Name of the action." }) name: string;
}
