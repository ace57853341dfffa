/** GraphQL types of data sources (tables of an app) and their entries. Contains only declarations. */
import { GraphQLScalarType } from "graphql";
import { GraphQLJSON } from "graphql-scalars";
import { Field, Float, ID, InputType, Int, ObjectType } from "type-graphql";
import { DateTime } from "./leaf-types.js";
import { DEPRECATED_IN_FAVOR_OF_PAGE, ListPageType, PageItemsField } from "./page-types.js";

/** Declares a GraphQL scalar for a JSON list or object. src/rules checks its members later. */
const createJsonScalar = (name: string, description: string) =>
  new GraphQLScalarType({ ...GraphQLJSON.toConfig(), name, description, specifiedByURL: null });

export const AccessRulesScalar = createJsonScalar(
  "AccessRules",
  'List of {type: ["select", "insert", "update", "delete"], allow: "all" | "loggedIn" | {user}, enabled, include, exclude, require}.',
);
export const HooksScalar = createJsonScalar(
  "DataSourceHooks",
  'List of {type: "operations", runOn: ["insert", "update"], fields: {Column: ["trim"]}}, {type: "email", runOn, where, to, subject, html} and {type: "sms", runOn, where, to, body}.',
);
export const IndexesScalar = createJsonScalar(
  "DataSourceIndexes",
  'List of "Column", ["Column", "Column"] or {columns: ["Column"], unique: true}; a unique index rejects duplicate values.',
);
const Joins = createJsonScalar(
  "EntryJoins",
  "Object of joins by name, each {dataSourceId or dataSourceName, on, required, has, count, sum, where, attributes, limit, order}.",
);

@ObjectType("DataSource", { description: "Named list of entries, each a JSON object." })
export class DataSourceType {
  @Field(() => Int, { description: "ID of the data source." }) id: number;
  @Field(() => Int, { description: "ID of the app." }) appId: number;
  @Field(() => Int, { description: "ID of the organization that owns the app." }) organizationId: number;
  @Field(() => String, { description: "Name of the data source, unique in the app." }) name: string;
  @Field(() => [String], { description: "Names of the columns, in the order of their first appearance." })
  columns: string[];
  @Field(() => AccessRulesScalar, { description: "Rules that grant access to the users of pages." })
  accessRules: unknown;
  @Field(() => HooksScalar, { description: "Operations and messages that run when entries change." }) hooks: unknown;
  @Field(() => IndexesScalar, { description: "Indexes of the entries." }) indexes: unknown;
  @Field(() => Boolean, { description: "True if the entries are the app's users, who sign in to its pages." })
  isUsers: boolean;
  @Field(() => DateTime, { description: "Time of creation." }) createdAt: string;
  @Field(() => DateTime, { description: "Time of the last change." }) updatedAt: string;
}

@ObjectType("DataSourceEntry", { description: "Entry of a data source." })
export class EntryType {
  @Field(() => Int, { description: "ID of the entry." }) id: number;
  @Field(() => Int, { description: "ID of the data source." }) dataSourceId: number;
  @Field(() => GraphQLJSON, { description: "Values of the entry by column." }) data: unknown;
  @Field(() => Float, { description: "Position of the entry in the data source; a lower number comes first." })
  order: number;
  @Field(() => DateTime, { description: "Time of creation." }) createdAt: string;
  @Field(() => DateTime, { description: "Time of the last change." }) updatedAt: string;
  @Field(() => GraphQLJSON, {
    nullable: true,
    description: "Results of the query's joins by name; null if the query has none.",
  })
  joins?: unknown;
}

@ObjectType("DataSourcePagination", { description: "Position of a page in a list of entries." })
class EntryPaginationType {
  @Field(() => Float, { description: "Number of matching entries on all pages." }) total: number;
  @Field(() => Int, { description: "Maximum number of entries on this page." }) limit: number;
  @Field(() => Float, { description: "Number of entries before this page." }) offset: number;
  @Field(() => Boolean, { nullable: true, description: "True if `total` is an estimate; null if it is exact." })
  about?: boolean;
}

@ObjectType("DataSourceCursor", { description: "Cursors of the pages before and after this page." })
class EntryCursorType {
  @Field(() => Boolean, { description: "True if no page precedes this page." }) isFirstPage: boolean;
  @Field(() => Boolean, { description: "True if no page follows this page." }) isLastPage: boolean;
  @Field(() => String, { nullable: true, description: "Cursor of the next page; null on the last page." }) next:
    | string
    | null;
  @Field(() => String, { nullable: true, description: "Cursor of the previous page; null on the first page." }) prev:
    | string
    | null;
}

@ObjectType("DataSourceEntryList", { implements: ListPageType, description: "Result of a query of entries." })
export class EntryListType {
  @PageItemsField(() => [EntryType], "Matching entries on this page; empty if the query has an aggregate.")
  entries: EntryType[];
  @Field(() => [GraphQLJSON], { nullable: true, description: "Results of the aggregate; null if the query has none." })
  documents: unknown[] | null;
  @Field(() => EntryPaginationType, {
    ...DEPRECATED_IN_FAVOR_OF_PAGE,
    nullable: true,
    description: "Position of this page in the list; null if the query did not request it.",
  })
  pagination?: EntryPaginationType;
  @Field(() => EntryCursorType, {
    nullable: true,
    description: "Cursors of the adjacent pages; null if the query has no cursor.",
  })
  cursor?: EntryCursorType;
}

@ObjectType("DataSourceChange", { description: "Changes of the entries that match a filter." })
export class EntryChangesType {
  @Field(() => Boolean, { description: "True if changes were lost and the client must read the entries again." })
  reset: boolean;
  @Field(() => String, { description: "Value for `since` that resumes after this message." }) position: string;
  @Field(() => [EntryType], { description: "Current state of entries that started to match the filter." })
  inserted: EntryType[];
  @Field(() => [EntryType], { description: "Current state of changed entries that still match the filter." })
  updated: EntryType[];
  @Field(() => [EntryType], {
    description: "Last known state of entries that were deleted or no longer match the filter.",
  })
  deleted: EntryType[];
}

@InputType("DataSourceQueryInput", { description: "Query of entries, with the same properties as in the REST API." })
export class EntryQueryInput {
  @Field(() => GraphQLJSON, {
    nullable: true,
    description: "Filter that the entries must match; all entries by default.",
  })
  where?: unknown;
  @Field(() => [String], { nullable: true, description: "Names of the columns to return; all columns by default." })
  attributes?: string[];
  @Field(() => [[String]], {
    nullable: true,
    description: 'Sort order as pairs of field and direction, for example [["data.Name", "ASC"]].',
  })
  order?: unknown;
  @Field(() => Int, {
    nullable: true,
    description: "Maximum number of entries to return, at most 10,000; 1,000 by default.",
  })
  limit?: number;
  @Field(() => Int, { nullable: true, description: "Number of entries to skip; 0 by default." }) offset?: number;
  @Field(() => Boolean, { nullable: true, description: "True to return `pagination`." }) includePagination?: boolean;
  @Field(() => Joins, { nullable: true, description: "Joins with other data sources." }) join?: unknown;
  @Field(() => GraphQLJSON, {
    nullable: true,
    description: "Aggregation whose results are returned as `documents` instead of entries.",
  })
  aggregate?: unknown;
  @Field(() => String, {
    nullable: true,
    description: "Cursor of a page: `first` for the first page, then `cursor.next` of the previous response.",
  })
  cursor?: string;
}

@ObjectType("DeletedEntries", { description: "Result of deleting entries by a filter." })
export class DeletedEntriesType {
  @Field(() => Int, { description: "Number of deleted entries." }) deletedCount: number;
}

@ObjectType("DataSourceVersion", {
  description: "Snapshot of a data source's entries, taken before an operation that changed many of them.",
})
export class DataSourceVersionType {
  @Field(() => Int, { description: "ID of the snapshot." }) id: number;
  @Field(() => Int, { description: "ID of the data source." }) dataSourceId: number;
  @Field(() => String, { description: "Operation that followed the snapshot, for example import." }) operation: string;
  @Field(() => Int, { nullable: true, description: "ID of the person who caused the snapshot; null if no person did." })
  userId: number | null;
  @Field(() => [String], { description: "Names of the columns at the time." }) columns: string[];
  @Field(() => Int, { description: "Number of entries in the snapshot." }) entries: number;
  @Field(() => Float, { description: "Size of the snapshot in bytes." }) bytes: number;
  @Field(() => DateTime, { description: "Time of creation." }) createdAt: string;
}

@ObjectType("DataSourceQuery", {
  description: "Kind of recent queries of a data source, and the index that serves them.",
})
export class RecentQueryType {
  @Field(() => [String], { description: "Filtered columns with their operators, for example Seat $gt." })
  where: string[];
  @Field(() => [String], { description: "Sort columns with their directions, for example Seat DESC." }) order: string[];
  @Field(() => Boolean, { description: "True if the queries have an aggregate." }) aggregate: boolean;
  @Field(() => Int, { description: "Number of queries of this kind." }) count: number;
  @Field(() => Float, { description: "95th percentile of the duration of the last 64 queries, in milliseconds." })
  p95Ms: number;
  @Field(() => DateTime, { description: "Time of the last query." }) lastAt: string;
  @Field(() => [String], {
    nullable: true,
    description: "Columns of the index that serves the queries; null if no index does.",
  })
  index: string[] | null;
  @Field(() => [String], {
    nullable: true,
    description: "Columns of a missing index that would serve the queries; null if there is none.",
  })
  suggestion: string[] | null;
}

@ObjectType("CommittedEntries", {
  description: "Result of a commit: the entries if `returnEntries` is true, otherwise their numbers.",
})
export class EntryCommitResultType {
  @Field(() => [EntryType], { nullable: true, description: "Written entries; null unless `returnEntries` is true." })
  entries?: EntryType[];
  @Field(() => Int, { nullable: true, description: "Number of inserted entries; null if `entries` is returned." })
  inserted?: number;
  @Field(() => Int, { nullable: true, description: "Number of updated entries; null if `entries` is returned." })
  updated?: number;
  @Field(() => Int, { nullable: true, description: "Number of deleted entries; null if `entries` is returned." })
  deleted?: number;
}

@ObjectType("ImportedEntries", { description: "Result of an import." })
export class EntryImportResultType {
  @Field(() => Int, { description: "Number of inserted entries." }) inserted: number;
  @Field(() => [String], {
    nullable: true,
    description: "Names of the imported columns, in the order of their first appearance; null for a restored snapshot.",
  })
  columns?: string[];
  @Field(() => String, { nullable: true, description: "Delimiter of the CSV cells; null for other formats." })
  delimiter?: string | null;
}

@InputType("CommitEntryInput", {
  description: "Entry to insert, if it has no ID, or to update. The other fields of a read entry are ignored.",
})
class CommitEntryInput {
  @Field(() => Int, { nullable: true, description: "ID of the entry to update; absent or null inserts an entry." })
  id?: unknown;
  @Field(() => GraphQLJSON, { nullable: true, description: "Values of the entry by column." }) data?: unknown;
  @Field(() => DateTime, {
    nullable: true,
    description: "Rejects the commit unless this is the current `updatedAt` of the entry.",
  })
  ifUpdatedAt?: unknown;
  @Field(() => Int, { nullable: true, description: "Ignored." }) dataSourceId?: unknown;
  @Field(() => DateTime, { nullable: true, description: "Ignored." }) createdAt?: unknown;
  @Field(() => DateTime, { nullable: true, description: "Ignored." }) updatedAt?: unknown;
  @Field(() => Float, { nullable: true, description: "Ignored." }) order?: unknown;
}

@InputType("CommitInput", { description: "Inserts, updates and deletions of entries, committed in one transaction." })
export class EntryCommitInput {
  @Field(() => [CommitEntryInput], { nullable: true, description: "Entries to insert or update." }) entries?: unknown;
  @Field(() => [Int], { nullable: true, description: "IDs of the entries to delete." }) delete?: unknown;
  @Field(() => Boolean, {
    nullable: true,
    description: "False to delete all entries that the commit does not name; true by default.",
  })
  append?: unknown;
  @Field(() => Boolean, {
    nullable: true,
    description: "True to merge the columns of updated entries; otherwise `data` replaces their values.",
  })
  extend?: unknown;
  @Field(() => Boolean, { nullable: true, description: "True to return the written entries instead of their numbers." })
  returnEntries?: unknown;
  @Field(() => [String], {
    nullable: true,
    description: "Operations whose hooks send messages, insert or update; both by default, none for an empty list.",
  })
  runHooks?: unknown;
}

@InputType("CreateDataSourceInput", { description: "Properties of a new data source." })
export class CreateDataSourceInput {
  @Field(() => String, { nullable: true, description: "Name of the data source, unique in the app; required." })
  name?: unknown;
  @Field(() => [String], { nullable: true, description: "Names of the columns." }) columns?: unknown;
  @Field(() => AccessRulesScalar, { nullable: true, description: "Rules that grant access to the users of pages." })
  accessRules?: unknown;
  @Field(() => HooksScalar, { nullable: true, description: "Operations and messages that run when entries change." })
  hooks?: unknown;
  @Field(() => IndexesScalar, { nullable: true, description: "Indexes of the entries." }) indexes?: unknown;
  @Field(() => Boolean, {
    nullable: true,
    description:
      "True if the entries are the app's users. Requires a hashed column. Only people who are signed in can change this field, tokens cannot.",
  })
  isUsers?: unknown;
  @Field(() => [GraphQLJSON], { nullable: true, description: "Data of the first entries." }) entries?: unknown;
}

@InputType("UpdateDataSourceInput", { description: "Changes to a data source; omitted properties keep their values." })
export class UpdateDataSourceInput {
  @Field(() => String, { nullable: true, description: "Name of the data source, unique in the app." }) name?: unknown;
  @Field(() => [String], { nullable: true, description: "Names of the columns." }) columns?: unknown;
  @Field(() => AccessRulesScalar, { nullable: true, description: "Rules that grant access to the users of pages." })
  accessRules?: unknown;
  @Field(() => HooksScalar, { nullable: true, description: "Operations and messages that run when entries change." })
  hooks?: unknown;
  @Field(() => IndexesScalar, { nullable: true, description: "Indexes of the entries." }) indexes?: unknown;
  @Field(() => Boolean, {
    nullable: true,
    description:
      "True if the entries are the app's users. Requires a hashed column. Only people who are signed in can change this field, tokens cannot.",
  })
  isUsers?: unknown;
}

@InputType("AccessTrialUserInput", {
  description: "User of an evaluation: an existing entry, or the data of a hypothetical one.",
})
class AccessTrialUserInput {
  @Field(() => ID, { nullable: true, description: "ID or name of the data source of the users." })
  dataSourceId?: unknown;
  @Field(() => Int, { nullable: true, description: "ID of an existing entry." }) entryId?: unknown;
  @Field(() => GraphQLJSON, { nullable: true, description: "Data of a hypothetical entry by column." }) data?: unknown;
}

@InputType("AccessTrialInput", { description: "User, access rules and filter of an evaluation." })
export class AccessTrialInput {
  @Field(() => AccessTrialUserInput, { nullable: true, description: "User of the app; null for an anonymous caller." })
  user?: unknown;
  @Field(() => AccessRulesScalar, {
    nullable: true,
    description: "Access rules to evaluate; the stored rules by default.",
  })
  accessRules?: unknown;
  @Field(() => GraphQLJSON, {
    nullable: true,
    description: "Filter of the evaluated query; the filter that the rules require by default.",
  })
  where?: unknown;
}

@ObjectType("AccessTrialVerb", { description: "Result of an evaluation of access rules for one operation." })
class AccessTrialOperationType {
  @Field(() => String, { description: "Operation: select, insert, update or delete." }) verb: string;
  @Field(() => Boolean, { description: "True if the user can perform the operation." }) allowed: boolean;
  @Field(() => Int, {
    nullable: true,
    description: "Index of the rule that decides, counted from 0; null if no rule applies.",
  })
  rule: number | null;
  @Field(() => [String], { description: "Names of the known columns that the user can read or write." })
  columns: string[];
  @Field(() => [String], { description: "Names of the columns that the filter or the data must contain." })
  required: string[];
  @Field(() => String, {
    nullable: true,
    description: "Reason why the operation is denied although a rule applies; null otherwise.",
  })
  reason: string | null;
}

@ObjectType("AccessTrial", { description: "Result of an evaluation of access rules." })
export class AccessTrialType {
  @Field(() => GraphQLJSON, {
    nullable: true,
    description: "Data of the user by column, without hashed columns; null for an anonymous caller.",
  })
  user: unknown;
  @Field(() => [AccessTrialOperationType], { description: "Result for each operation." })
  verbs: AccessTrialOperationType[];
  @Field(() => [EntryType], {
    nullable: true,
    description: "First 20 entries that the user can read; null if reading is denied.",
  })
  entries: EntryType[] | null;
  @Field(() => String, { nullable: true, description: "Reason why reading is denied; null if it is allowed." }) reason:
    | string
    | null;
}
