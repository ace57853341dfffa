/** GraphQL type of an audit entry's details. Each operation has other details, so they are listed as names and values in text. */
import { Field, FieldResolver, ObjectType, Resolver, Root } from "type-graphql";
import { AuditEntryType } from "./audit-resolver.js";
import { AccessEntryType } from "./auth-types.js";

@ObjectType("AuditDetail", { description: "One detail of an operation in an audit log." })
class AuditDetailType {
  @Field(() => String, { description: "Name of the detail, such as name, fields or ref." }) name: string;
  @Field(() => [String], {
    description: "Its value as text; one for each item of a list, none for null. Objects are JSON texts.",
  })
  values: string[];
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

function detailsOf(data: unknown): AuditDetailType[] {
  return Object.entries(data as object).map(([name, value]: [string, unknown]) => {
    const values = Array.isArray(value) ? (value as unknown[]) : [value];
    return { name, values: values.filter((item) => item !== null).map(textOf) };
  });
}

const DETAILS_DESCRIPTION = "Details of the operation: names of keys, names of fields, roles and IDs.";

@Resolver(() => AuditEntryType)
export class AuditDetailsResolver {
  @FieldResolver(() => [AuditDetailType], { description: DETAILS_DESCRIPTION })
  details(@Root() { data }: { data: unknown }): AuditDetailType[] {
    return detailsOf(data);
  }
}

@Resolver(() => AccessEntryType)
export class AccessDetailsResolver {
  @FieldResolver(() => [AuditDetailType], { description: DETAILS_DESCRIPTION })
  details(@Root() { data }: { data: unknown }): AuditDetailType[] {
    return detailsOf(data);
  }
}
