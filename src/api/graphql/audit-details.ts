/**
 * GraphQL type for the details of an audit log entry. The details differ by operation, so GraphQL returns them as pairs of a name and
 * texts.
 */
import { Field, FieldResolver, ObjectType, Resolver, Root } from "type-graphql";
import { AuditEntryType } from "./audit-resolver.js";
import { AccessLogEntryType } from "./auth-types.js";

@ObjectType("AuditDetail", { description: "One detail of an operation in an audit log." })
class AuditDetailType {
  @Field(() => String, { description: "Name of the detail, such as name, fields or ref." }) name: string;
  @Field(() => [String], {
    description: "Its value as text; one for each item of a list, none for null. Objects are JSON texts.",
  })
  values: string[];
}

const toText = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

function listDetails(data: unknown): AuditDetailType[] {
  return Object.entries(data as object).map(([name, value]: [string, unknown]) => {
    const values = Array.isArray(value) ? (value as unknown[]) : [value];
    return { name, values: values.filter((item) => item !== null).map(toText) };
  });
}

const DETAILS_DESCRIPTION = "Details of the operation: names of keys, names of fields, roles and IDs.";

@Resolver(() => AuditEntryType)
export class AuditDetailsResolver {
  @FieldResolver(() => [AuditDetailType], { description: DETAILS_DESCRIPTION })
  details(@Root() { data }: { data: unknown }): AuditDetailType[] {
    return listDetails(data);
  }
}

@Resolver(() => AccessLogEntryType)
export class AccessLogEntryDetailsResolver {
  @FieldResolver(() => [AuditDetailType], { description: DETAILS_DESCRIPTION })
  details(@Root() { data }: { data: unknown }): AuditDetailType[] {
    return listDetails(data);
  }
}
