/** GraphQL type of an action's source files: as a JSON object, and as a list of typed items. */
import { GraphQLJSON } from "graphql-scalars";
import { Field, FieldResolver, ObjectType, Resolver, Root } from "type-graphql";
import type { ActionSource, SourceLanguage } from "../../data/action-types.js";
import { SourceLanguageEnum } from "./leaf-types.js";

@ObjectType("SourceFile", { description: "File of an action's source." })
class SourceFileType {
  @Field(() => String, { description: "Relative path, such as action.ts or lib/dates.ts." }) path: string;
  @Field(() => String, { description: "Text of the file." }) text: string;
}

@ObjectType("ActionSource", { description: "Files of an action, from which the service builds its code." })
export class ActionSourceType implements ActionSource {
  @Field(() => SourceLanguageEnum, { description: "Language of the entry file." }) language: SourceLanguage;
  @Field(() => GraphQLJSON, { description: "Texts by relative path.", deprecationReason: "Use `fileList`." })
  files: Record<string, string>;
}

@Resolver(() => ActionSourceType)
export class ActionSourceResolver {
  @FieldResolver(() => [SourceFileType], { description: "Files in the order of their paths." })
  fileList(@Root() { files }: ActionSource): SourceFileType[] {
    return Object.entries(files).map(([path, text]) => ({ path, text }));
  }
}
