/** Builds the reference page of the GraphQL operations: arguments, result and callers of each, with a sample document. */
import {
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isInputObjectType,
  isObjectType,
} from "graphql";
import type { Operation } from "../../rules/access.js";
import { CALLERS_NOTE, describeCallers, usesAccessRules } from "./callers.js";
import { buildReferencePage, formatInlineCode, formatMarkdownTable } from "./tables.js";

type Field = GraphQLField<unknown, unknown>;

const formatSignature = ({ name, args, type }: Field): string => {
  const argumentList = args.map((argument) => `${argument.name}: ${argument.type}`).join(", ");
  return `${name}${argumentList === "" ? "" : `(${argumentList})`}: ${type}`;
};

function describeFieldCallers(name: string, operations: readonly Operation[]): string {
  const callers = describeCallers(operations) || "a signed-in person";
  return usesAccessRules(name, operations)
    ? `${callers}; other callers if an access rule of the app allows the request`
    : callers;
}

function buildSection(
  title: string,
  rootType: GraphQLObjectType | null | undefined,
  operationsByField: ReadonlyMap<string, readonly Operation[]>,
): string {
  const rows = Object.values(rootType?.getFields() ?? {}).sort((a, b) => (a.name < b.name ? -1 : 1));
  const cells = rows.map((field) => [
    formatInlineCode(formatSignature(field)),
    `${field.deprecationReason == null ? "" : `**Deprecated**: ${field.deprecationReason} `}${field.description ?? ""}`,
    describeFieldCallers(field.name, operationsByField.get(field.name) ?? []),
  ]);
  return `## ${title}\n\n${formatMarkdownTable(["operation", "does", "callers"], cells)}`;
}

function formatTypes(schema: GraphQLSchema): string {
  const types = Object.values(schema.getTypeMap()).filter(({ name }) => !name.startsWith("__"));
  const shownTypes = types.filter(
    (type) => isInputObjectType(type) || (isObjectType(type) && !/^(?:Query|Mutation|Subscription)$/.test(type.name)),
  );
  const rows = shownTypes
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((type) => {
      const fields = Object.values((type as GraphQLObjectType).getFields());
      return [
        formatInlineCode(type.name),
        fields
          .map(({ name, type: fieldType }) =>
            formatInlineCode(
              `${name}: ${getNamedType(fieldType).name === String(fieldType) ? fieldType : String(fieldType)}`,
            ),
          )
          .join(" "),
      ];
    });
  return `## Types\n\n${formatMarkdownTable(["type", "fields"], rows)}`;
}

const PAGE_LEAD =
  "For everyone who calls `/graphql`. [The API](api.md#graphql-over-http) explains how to send documents, and when a subscription ends. GraphiQL, at `/graphql` in a browser, shows these operations with a description of every field. A mutation whose result has the type `Boolean!` returns true if it succeeds.";

export function buildGraphqlOperationsPage(
  schema: GraphQLSchema,
  operationsByField: ReadonlyMap<string, readonly Operation[]>,
): string {
  const lead = `${PAGE_LEAD}\n\n${CALLERS_NOTE}`;
  return buildReferencePage("GraphQL operations", lead, "the schema", [
    buildSection("Queries", schema.getQueryType(), operationsByField),
    buildSection("Mutations", schema.getMutationType(), operationsByField),
    buildSection("Subscriptions", schema.getSubscriptionType(), operationsByField),
    formatTypes(schema),
  ]);
}
