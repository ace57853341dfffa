/** Shapes of data sources and their entries in the GraphQL schema. No behaviour. */
import { GraphQLScalarType } from "graphql";
import { GraphQLJSON } from "graphql-scalars";
import { Field, Float, ID, InputType, Int, ObjectType } from "type-graphql";
import { DateTime } from "./leaf-types.js";

/** A list or an object whose members are judged by the rules. */
const judged = (name: string, description: string) =>
  new GraphQLScalarType({ ...GraphQLJSON.toConfig(), name, description, specifiedByURL: null });

const AccessRules = judged(
  "AccessRules",
  'List of {type: ["select", "insert", "update", "delete"], allow: "all" | "loggedIn" | {user}, enabled, include, exclude, require}.',
);
const Hooks = judged(
  "DataSourceHooks",
  'List of {type: "operations", runOn: ["insert", "update"], fields: {Column: ["trim"]}}, {type: "email", runOn, where, to, subject, html} and {type: "sms", runOn, where, to, body}.',
);
const Indexes = judged(
  "DataSourceIndexes",
  'List of "Column", ["Column", "Column"] or {columns: ["Column"], unique: true}; a unique index rejects duplicate values.',
);
const Joins = judged(
  "EntryJoins",
  "Object of joins by name, each {dataSourceId or dataSourceName, on, required, has, count, sum, where, attributes, limit, order}.",
);

@ObjectType("DataSource", { description: "A named list of entries, each a JSON object." })
export class DataSourceType {
  @Field(() => Int) id: number;
  @Field(() => Int) appId: number;
  @Field(() => Int) organizationId: number;
  @Field(() => String) name: string;
  @Field(() => [String], { description: "In the order in which they were met." }) columns: string[];
  @Field(() => AccessRules) accessRules: unknown;
  @Field(() => Hooks) hooks: unknown;
  @Field(() => Indexes) indexes: unknown;
  @Field(() => Boolean, { description: "True if it holds the app's users: pages sign in by its entries." })
  isUsers: boolean;
  @Field(() => DateTime) createdAt: string;
  @Field(() => DateTime) updatedAt: string;
}

@ObjectType("DataSourceEntry")
export class EntryType {
  @Field(() => Int) id: number;
  @Field(() => Int) dataSourceId: number;
  @Field(() => GraphQLJSON) data: unknown;
  @Field(() => Float) order: number;
  @Field(() => DateTime) createdAt: string;
  @Field(() => DateTime) updatedAt: string;
  @Field(() => GraphQLJSON, { nullable: true, description: "By the names that the query gave its joins." })
  joins?: unknown;
}

@ObjectType("DataSourcePagination")
class EntryPaginationType {
  @Field(() => Float) total: number;
  @Field(() => Int) limit: number;
  @Field(() => Float) offset: number;
  @Field(() => Boolean, { nullable: true, description: "true: `total` is an estimate." }) about?: boolean;
}

@ObjectType("DataSourceCursor")
class EntryCursorType {
  @Field(() => Boolean) isFirstPage: boolean;
  @Field(() => Boolean) isLastPage: boolean;
  @Field(() => String, { nullable: true }) next: string | null;
  @Field(() => String, { nullable: true }) prev: string | null;
}

@ObjectType("DataSourceEntryList")
export class EntryListType {
  @Field(() => [EntryType]) entries: EntryType[];
  @Field(() => [GraphQLJSON], { nullable: true, description: "What an aggregate made." }) documents: unknown[] | null;
  @Field(() => EntryPaginationType, { nullable: true }) pagination?: EntryPaginationType;
  @Field(() => EntryCursorType, { nullable: true }) cursor?: EntryCursorType;
}

@ObjectType("DataSourceChange", { description: "Each entry as it stands now; those that left as they were last seen." })
export class EntryNewsType {
  @Field(() => Boolean, { description: "More changed than is told: read anew." }) reset: boolean;
  @Field(() => String, { description: "For `since`, to go on from here." }) position: string;
  @Field(() => [EntryType]) inserted: EntryType[];
  @Field(() => [EntryType]) updated: EntryType[];
  @Field(() => [EntryType]) deleted: EntryType[];
}

@InputType("DataSourceQueryInput", { description: "What REST's query takes." })
export class EntryQueryInput {
  @Field(() => GraphQLJSON, { nullable: true }) where?: unknown;
  @Field(() => [String], { nullable: true }) attributes?: string[];
  @Field(() => [[String]], { nullable: true, description: '[["data.Name", "ASC"]]' }) order?: unknown;
  @Field(() => Int, { nullable: true, description: "1,000 unless given, 10,000 at most." }) limit?: number;
  @Field(() => Int, { nullable: true }) offset?: number;
  @Field(() => Boolean, { nullable: true }) includePagination?: boolean;
  @Field(() => Joins, { nullable: true }) join?: unknown;
  @Field(() => GraphQLJSON, { nullable: true }) aggregate?: unknown;
  @Field(() => String, { nullable: true, description: "first for the first page, then what `cursor.next` gives." })
  cursor?: string;
}

@ObjectType("DeletedEntries")
export class DeletedType {
  @Field(() => Int) deletedCount: number;
}

@ObjectType("DataSourceVersion", { description: "A snapshot of the entries, taken before what changed many." })
export class EntryVersionType {
  @Field(() => Int) id: number;
  @Field(() => Int) dataSourceId: number;
  @Field(() => String, { description: "What was about to be done." }) operation: string;
  @Field(() => Int, { nullable: true }) userId: number | null;
  @Field(() => [String]) columns: string[];
  @Field(() => Int) entries: number;
  @Field(() => Float) bytes: number;
  @Field(() => DateTime) createdAt: string;
}

@ObjectType("DataSourceQuery", { description: "A kind of query, and which index serves it." })
export class RecentQueryType {
  @Field(() => [String], { description: "Each column with an operator: Seat $gt." }) where: string[];
  @Field(() => [String], { description: "Seat DESC." }) order: string[];
  @Field(() => Boolean) aggregate: boolean;
  @Field(() => Int) count: number;
  @Field(() => Float, { description: "Of the last 64 of them." }) p95Ms: number;
  @Field(() => DateTime) lastAt: string;
  @Field(() => [String], {
    nullable: true,
    description: "The columns of the index that serves it; null where none does.",
  })
  index: string[] | null;
  @Field(() => [String], { nullable: true, description: "The columns of an index that would serve it." })
  suggestion: string[] | null;
}

@ObjectType("CommittedEntries", { description: "The entries where `returnEntries` asked for them, else how many." })
export class CommittedType {
  @Field(() => [EntryType], { nullable: true }) entries?: EntryType[];
  @Field(() => Int, { nullable: true }) inserted?: number;
  @Field(() => Int, { nullable: true }) updated?: number;
  @Field(() => Int, { nullable: true }) deleted?: number;
}

@ObjectType("ImportedEntries")
export class ImportedType {
  @Field(() => Int) inserted: number;
  @Field(() => [String], { nullable: true, description: "Of the rows, in the order of their first appearance." })
  columns?: string[];
  @Field(() => String, { nullable: true, description: "Between the cells of a CSV; null for other formats." })
  delimiter?: string | null;
}

@InputType("CommitEntryInput", {
  description: "Without an id it is inserted, with one updated. The other fields of a read entry are ignored.",
})
class CommitEntryInput {
  @Field(() => Int, { nullable: true }) id?: unknown;
  @Field(() => GraphQLJSON, { nullable: true }) data?: unknown;
  @Field(() => DateTime, { nullable: true, description: "The updatedAt that the update starts from." })
  ifUpdatedAt?: unknown;
  @Field(() => Int, { nullable: true, description: "Ignored." }) dataSourceId?: unknown;
  @Field(() => DateTime, { nullable: true, description: "Ignored." }) createdAt?: unknown;
  @Field(() => DateTime, { nullable: true, description: "Ignored." }) updatedAt?: unknown;
  @Field(() => Float, { nullable: true, description: "Ignored." }) order?: unknown;
}

@InputType("CommitInput")
export class CommitInput {
  @Field(() => [CommitEntryInput], { nullable: true }) entries?: unknown;
  @Field(() => [Int], { nullable: true, description: "Ids to remove." }) delete?: unknown;
  @Field(() => Boolean, { nullable: true, description: "false: what is not named is removed." }) append?: unknown;
  @Field(() => Boolean, { nullable: true, description: "true: updates merge columns; else they replace the data." })
  extend?: unknown;
  @Field(() => Boolean, { nullable: true }) returnEntries?: unknown;
  @Field(() => [String], {
    nullable: true,
    description: "Whose hooks send messages: insert, update; both unless given.",
  })
  runHooks?: unknown;
}

@InputType("CreateDataSourceInput")
export class CreateDataSourceInput {
  @Field(() => String, { nullable: true }) name?: unknown;
  @Field(() => [String], { nullable: true }) columns?: unknown;
  @Field(() => AccessRules, { nullable: true }) accessRules?: unknown;
  @Field(() => Hooks, { nullable: true }) hooks?: unknown;
  @Field(() => Indexes, { nullable: true }) indexes?: unknown;
  @Field(() => Boolean, { nullable: true, description: "Only editors can change it; it needs a hashed column." })
  isUsers?: unknown;
  @Field(() => [GraphQLJSON], { nullable: true, description: "The data of its first entries." }) entries?: unknown;
}

@InputType("UpdateDataSourceInput")
export class UpdateDataSourceInput {
  @Field(() => String, { nullable: true }) name?: unknown;
  @Field(() => [String], { nullable: true }) columns?: unknown;
  @Field(() => AccessRules, { nullable: true }) accessRules?: unknown;
  @Field(() => Hooks, { nullable: true }) hooks?: unknown;
  @Field(() => Indexes, { nullable: true }) indexes?: unknown;
  @Field(() => Boolean, { nullable: true, description: "Only editors can change it; it needs a hashed column." })
  isUsers?: unknown;
}

@InputType("AccessTrialUserInput", { description: "An entry, or one that is not there: its data." })
class AccessTrialUserInput {
  @Field(() => ID, { nullable: true, description: "Its id or its name." }) dataSourceId?: unknown;
  @Field(() => Int, { nullable: true }) entryId?: unknown;
  @Field(() => GraphQLJSON, { nullable: true }) data?: unknown;
}

@InputType("AccessTrialInput")
export class AccessTrialInput {
  @Field(() => AccessTrialUserInput, { nullable: true, description: "null: nobody." }) user?: unknown;
  @Field(() => AccessRules, { nullable: true, description: "The kept ones unless given." }) accessRules?: unknown;
  @Field(() => GraphQLJSON, { nullable: true, description: "What the rules ask for unless given." }) where?: unknown;
}

@ObjectType("AccessTrialVerb")
class AccessTrialVerbType {
  @Field(() => String) verb: string;
  @Field(() => Boolean) allowed: boolean;
  @Field(() => Int, { nullable: true, description: "Which rule decides, counted from 0." }) rule: number | null;
  @Field(() => [String], { description: "Of the known columns, those that may be read or written." }) columns: string[];
  @Field(() => [String], { description: "That must be in the where or the data." }) required: string[];
  @Field(() => String, { nullable: true }) reason: string | null;
}

@ObjectType("AccessTrial")
export class AccessTrialType {
  @Field(() => GraphQLJSON, { nullable: true }) user: unknown;
  @Field(() => [AccessTrialVerbType]) verbs: AccessTrialVerbType[];
  @Field(() => [EntryType], { nullable: true, description: "The first; null where reading is refused." })
  entries: EntryType[] | null;
  @Field(() => String, { nullable: true, description: "Why it is refused." }) reason: string | null;
}
