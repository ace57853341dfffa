/** Converts GraphQL types to JSON Schemas, so that one definition describes both GraphQL and REST. */
import {
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isObjectType,
} from "graphql";
import { getMetadataStorage } from "type-graphql";

/** JSON Schema of OpenAPI 3.1 (draft 2020-12). */
export type JsonSchema = Record<string, unknown>;

const SCALAR_SCHEMAS: Record<string, JsonSchema> = {
  Int: { type: "integer" },
  SafeInt: { type: "integer" },
  Float: { type: "number" },
  String: { type: "string" },
  Boolean: { type: "boolean" },
  // An ID argument accepts a number, or a name as text.
  ID: { type: ["string", "integer"] },
  DateTime: { type: "string", format: "date-time" },
};

/** Input fields that exist in GraphQL but not in REST. */
const GRAPHQL_ONLY_INPUT_FIELDS = ["NotificationInput.publishAt", "ActionSourceInput.fileList"];
/** Fields that exist only in REST, or that have another type in REST than in GraphQL. */
export const REST_FIELD_OVERRIDES: Record<string, Record<string, JsonSchema>> = {
  Message: {
    headers: {
      ...{ type: "object", additionalProperties: { type: "string" } },
      description: "Additional headers of the message.",
    },
  },
  ActionDiff: {
    changes: {
      type: "array",
      description: "Fields that differ, without `code`.",
      items: {
        type: "object",
        properties: { field: { type: "string" }, before: {}, after: {} },
        required: ["field"],
      },
    },
  },
};
/** Fields that the response omits for callers without the right to read them, so that the schema marks them as optional. */
const WITHHELD_FIELDS = ["Action.code"];
/** Fields of GraphQL's lists that are deprecated there in favor of `Page`, but that REST responses contain. */
const FIELDS_DEPRECATED_IN_GRAPHQL = ["LogList.nextCursor"];

/** True if only GraphQL's interface `Page` has the field, so that REST responses lack it. */
function isListPageField(type: GraphQLObjectType, name: string): boolean {
  const page = type.getInterfaces().find((interfaceType) => interfaceType.name === "Page");
  return (
    page !== undefined &&
    (name === "items" || name in page.getFields()) &&
    !FIELDS_DEPRECATED_IN_GRAPHQL.includes(`${type.name}.${name}`)
  );
}

/** Returns the fields (as `Type.field`) that GraphQL resolvers compute, including those of subtypes. REST responses lack these fields. */
function findComputedFields(): ReadonlySet<string> {
  const { fieldResolvers, objectTypes } = getMetadataStorage();
  const externalFields = fieldResolvers.filter(({ kind }) => kind === "external");
  const listNames = (computed: unknown) =>
    objectTypes
      .filter(({ target }) => target === computed || Object.getPrototypeOf(target) === computed)
      .map(({ name }) => name);
  return new Set(
    externalFields.flatMap((field) => listNames(field.getObjectType?.()).map((name) => `${name}.${field.schemaName}`)),
  );
}

const toNullable = (schema: JsonSchema): JsonSchema => {
  if ("$ref" in schema) return { anyOf: [schema, { type: "null" }] };
  const { type } = schema;
  if (type === undefined) return schema;
  const types = [...[type].flat(), "null"];
  return "enum" in schema
    ? { ...schema, type: types, enum: [...(schema["enum"] as unknown[]), null] }
    : { ...schema, type: types };
};

export class OpenApiSchemas {
  /** JSON Schemas by the name of their GraphQL type, for `components.schemas`. */
  readonly components: Record<string, JsonSchema> = {};
  private readonly graphqlOnly = findComputedFields();

  /** Returns the JSON Schema of a GraphQL type in REST. It allows null where the GraphQL type does. */
  createSchema(type: GraphQLType): JsonSchema {
    if (isNonNullType(type)) return this.createNonNullSchema(type.ofType);
    return toNullable(this.createNonNullSchema(type));
  }

  /** Returns the JSON Schema of a GraphQL type, without null. */
  createNonNullSchema(type: GraphQLType): JsonSchema {
    if (isNonNullType(type)) return this.createNonNullSchema(type.ofType);
    if (isListType(type)) return { type: "array", items: this.createSchema(type.ofType) };
    return this.createReferenceSchema(type);
  }

  private createReferenceSchema(type: GraphQLNamedType): JsonSchema {
    if (!isEnumType(type) && !isInputObjectType(type) && !isObjectType(type)) return SCALAR_SCHEMAS[type.name] ?? {};
    if (!(type.name in this.components)) {
      // Adds the name before the schema is built, because a type may contain itself.
      this.components[type.name] = {};
      this.components[type.name] = this.createComponentSchema(type);
    }
    return { $ref: `#/components/schemas/${type.name}` };
  }

  private createComponentSchema(type: GraphQLNamedType): JsonSchema {
    const { description } = type;
    const descriptionField = description ? { description } : {};
    if (isEnumType(type))
      return { type: "string", ...descriptionField, enum: type.getValues().map(({ name }) => name) };
    if (isInputObjectType(type)) {
      // No input field is required in the schema, because src/rules reports missing fields one by one.
      const fields = Object.values(type.getFields())
        .filter(({ name }) => !GRAPHQL_ONLY_INPUT_FIELDS.includes(`${type.name}.${name}`))
        .map((field) => [field.name, this.createFieldSchema(field)]);
      return { type: "object", ...descriptionField, properties: Object.fromEntries(fields) };
    }
    if (!isObjectType(type)) return {};
    const fields = Object.values(type.getFields()).filter(
      ({ name }) => !this.graphqlOnly.has(`${type.name}.${name}`) && !isListPageField(type, name),
    );
    const properties = {
      ...Object.fromEntries(fields.map((field) => [field.name, this.createFieldSchema(field)])),
      ...REST_FIELD_OVERRIDES[type.name],
    };
    const required = fields
      .filter((field) => isNonNullType(field.type) && !WITHHELD_FIELDS.includes(`${type.name}.${field.name}`))
      .map(({ name }) => name);
    return { type: "object", ...descriptionField, properties, ...(required.length > 0 && { required }) };
  }

  private createFieldSchema(field: { type: GraphQLType; description?: string | null | undefined }): JsonSchema {
    const schema = this.createSchema(field.type);
    return field.description ? { ...schema, description: field.description } : schema;
  }
}
