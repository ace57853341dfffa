/**
 * GraphQL types of an app's definitions, for output and input. They are generated from the schema of the manifest
 * (rules/manifest.ts), so that a new field of the manifest also exists in GraphQL.
 */
import { GraphQLJSON, GraphQLSafeInt } from "graphql-scalars";
import { type ClassType, Field, InputType, Int, ObjectType } from "type-graphql";
import type { z } from "zod";
import { HTTP_WHERE_FIELDS } from "../../rules/http/where.js";
import { MANIFEST_PART_SCHEMAS, MANIFEST_SCHEMA } from "../../rules/manifest.js";
import { ActionSourceInput, ConcurrencyInput, DebounceInput } from "./action-inputs.js";
import { ConcurrencyType, DebounceType } from "./action-types.js";
import { AlertChannelEnum, AlertConditionEnum } from "./alert-types.js";
import { AccessRulesScalar, HooksScalar, IndexesScalar } from "./data-source-types.js";
import { HttpWhereFields, HttpWhereInputFields } from "./http-trigger-types.js";
import { ActionAccessScalar, EnvironmentEnum, TriggerTypeEnum } from "./leaf-types.js";
import { ActionSourceType } from "./source-types.js";

/** GraphQL type of a field. An array with one type means a list of that type. */
type FieldType = object | [object];

interface ZodSchemaParts {
  type: string;
  innerType?: z.core.$ZodType;
  element?: z.core.$ZodType;
}

interface FieldSchema {
  parts: ZodSchemaParts;
  isNullable: boolean;
  description: string;
}

/** Reads the type, nullability and description of a field, without wrappers such as `optional`. */
function readField(schema: z.core.$ZodType): FieldSchema {
  let [isNullable, isRequired] = [false, false];
  let description: string | undefined;
  for (let inner = schema; ; ) {
    description ??= (inner as z.ZodType).description;
    const parts = inner._zod.def as unknown as ZodSchemaParts;
    if (parts.innerType === undefined) return { parts, isNullable, description: description ?? "" };
    if (parts.type === "nonoptional") isRequired = true;
    else if (parts.type === "nullable" || !isRequired) isNullable = true;
    inner = parts.innerType;
  }
}

const SCALARS: Readonly<Record<string, object>> = {
  string: String,
  enum: String,
  boolean: Boolean,
  number: Int,
  literal: Int,
};

function getScalarType({ type, element }: ZodSchemaParts): FieldType {
  if (type === "array") return [getScalarType(readField(element!).parts) as object];
  return SCALARS[type] ?? GraphQLJSON;
}

interface TypeOptions {
  description: string;
  /** GraphQL types, by field, that replace the types which `getScalarType` derives from the manifest's schema. */
  types?: Readonly<Record<string, FieldType>>;
  /** Descriptions of fields that have no description in the manifest's schema. */
  descriptions?: Readonly<Record<string, string>>;
  base?: abstract new () => object;
}

/**
 * Declares a GraphQL field for each property of the schema. Skips properties that the base class has, and names with `$`, which GraphQL
 * does not allow.
 */
function defineFields(target: ClassType, schema: z.ZodObject, options: TypeOptions, isInput: boolean): void {
  const { types = {}, descriptions = {}, base } = options;
  const inheritedNames = base ? Object.keys(HTTP_WHERE_FIELDS) : [];
  for (const [name, field] of Object.entries(schema.shape)) {
    if (name.startsWith("$") || inheritedNames.includes(name)) continue;
    const { parts, isNullable, description } = readField(field);
    const type = types[name] ?? getScalarType(parts);
    const isList = Array.isArray(type);
    const nullable = isInput && isList ? "itemsAndList" : isInput || isNullable;
    Field(() => type as ClassType, { nullable, description: descriptions[name] ?? description })(
      target.prototype,
      name,
    );
  }
}

function createOutputType(name: string, schema: z.ZodObject, options: TypeOptions): ClassType {
  const target = options.base ? class extends options.base {} : class {};
  defineFields(target, schema, options, false);
  ObjectType(name, { description: options.description })(target);
  return target;
}

function createInputType(name: string, schema: z.ZodObject, options: TypeOptions): ClassType {
  const target = options.base ? class extends options.base {} : class {};
  defineFields(target, schema, options, true);
  InputType(`${name}Input`, { description: options.description })(target);
  return target;
}

const getItemSchema = (list: z.core.$ZodType): z.ZodObject => readField(list).parts.element as z.ZodObject;

function createDefinitionsType(createType: typeof createOutputType, isInput: boolean): ClassType {
  const where = createType("ManifestTriggerWhere", MANIFEST_PART_SCHEMAS.triggerWhere, {
    description: "Filter that selects which events or requests start an action.",
    types: { dataSourceId: GraphQLSafeInt },
    base: isInput ? HttpWhereInputFields : HttpWhereFields,
  });
  const trigger = createType("ManifestTrigger", MANIFEST_PART_SCHEMAS.trigger, {
    description: "One way to start an action.",
    types: { trigger: TriggerTypeEnum, where },
    descriptions: { where: "Filter for events or requests; null for other kinds of triggers." },
  });
  const asset = createType("ManifestAsset", getItemSchema(MANIFEST_PART_SCHEMAS.action.shape.assets), {
    description: "Exact script of a dependency.",
    descriptions: {
      name: "Name of the dependency.",
      version: "Exact version of an npm package; null for other URLs.",
      integrity: "Subresource integrity of the script.",
    },
  });
  const action = createType("ManifestAction", MANIFEST_PART_SCHEMAS.action, {
    description: "Draft of an action in a manifest.",
    types: {
      environment: EnvironmentEnum,
      triggers: [trigger],
      access: ActionAccessScalar,
      source: isInput ? ActionSourceInput : ActionSourceType,
      concurrency: isInput ? ConcurrencyInput : ConcurrencyType,
      debounce: isInput ? DebounceInput : DebounceType,
      assets: [asset],
    },
  });
  const dataSource = createType("ManifestDataSource", MANIFEST_PART_SCHEMAS.dataSource, {
    description: "Data source in a manifest, without its entries.",
    types: { accessRules: AccessRulesScalar, hooks: HooksScalar, indexes: IndexesScalar },
  });
  const alert = createType("ManifestAlert", MANIFEST_PART_SCHEMAS.alert, {
    description: "Alert in a manifest.",
    types: { condition: AlertConditionEnum, channel: AlertChannelEnum },
  });
  return createType("ManifestDefinitions", MANIFEST_SCHEMA, {
    description: "Definitions of an app.",
    types: {
      app: createType("ManifestApp", MANIFEST_PART_SCHEMAS.app, { description: "Properties of an app in a manifest." }),
      settings: [
        createType("ManifestSetting", MANIFEST_PART_SCHEMAS.setting, {
          description: "Setting in a manifest, without secret values.",
        }),
      ],
      secretBindings: [
        createType("ManifestSecretBinding", MANIFEST_PART_SCHEMAS.secretBinding, {
          description: "Secret binding in a manifest.",
        }),
      ],
      dataSources: [dataSource],
      actions: [action],
      alerts: [alert],
    },
  });
}

export const ManifestDefinitionsType = createDefinitionsType(createOutputType, false);
export const ManifestDefinitionsInput = createDefinitionsType(createInputType, true);
