/**
 * Finds out which inputs a REST route reads and what it returns. It calls the route's handler with placeholders that record each access, so
 * that the OpenAPI document needs no second description.
 */
import {
  type GraphQLField,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNullableType,
  isListType,
  isObjectType,
} from "graphql";
import { REFERENCE_KINDS } from "../../rules/reference.js";
import { listRootFields } from "../graphql/schema.js";
import type { RestRequest } from "../rest/request.js";
import type { Route } from "../rest/route.js";
import { type JsonSchema, type OpenApiSchemas, REST_FIELD_OVERRIDES } from "./schemas.js";

/** Inputs and response of one route, as a recording of its handler found them. */
export interface RouteDescription {
  /** First operation that the handler calls: a field of the GraphQL schema, or another method of its resolver. */
  operation: string | null;
  description: string | null;
  pathParameters: Map<string, JsonSchema>;
  queryParameters: Map<string, JsonSchema>;
  readsIfMatch: boolean;
  /** True if the route sets the `ETag` header from the version of the returned resource. */
  setsEtag: boolean;
  /** JSON Schema of the body; null if the route reads no body. */
  requestBodySchema: JsonSchema | null;
  responseSchema: JsonSchema;
  /** JSON Schema of the response to `?plan=true`, if it differs from the usual response. */
  planResponseSchema: JsonSchema | null;
}

/** Maximum depth to which a response is inspected. Below this depth, the schema refers to the named type. */
const RESPONSE_DEPTH_MAX = 3;

const BY_PARAMETER_SCHEMA: JsonSchema = {
  ...{ type: "string", enum: REFERENCE_KINDS },
  description:
    "Meaning of the reference in the path: ID or name. By default, digits are an ID, and any other text is a name.",
};

const ANY_NAME = "*";

/** Query parameter of manifest routes: with it, the route only lists the differences and applies nothing. */
const PLAN_PARAMETER = "plan";

/** Placeholder for any value with the given JSON Schema. */
class ValuePlaceholder {
  constructor(readonly schema: JsonSchema) {}

  /** Handlers use placeholders as property names. The returned property name stands for any name. */
  toString(): string {
    return ANY_NAME;
  }
}

class BodyPartPlaceholder {
  constructor(readonly name: string) {}
}

class RequestRecording {
  readonly notes: RouteDescription = {
    ...{ operation: null, description: null, pathParameters: new Map(), queryParameters: new Map() },
    ...{ readsIfMatch: false, setsEtag: false, requestBodySchema: null, responseSchema: {}, planResponseSchema: null },
  };
  /** Placeholder for the whole body. */
  private readonly bodyPlaceholder = {};
  private readonly bodyFieldSchemas = new Map<string, JsonSchema>();
  private readonly placeholderSchemas = new WeakMap<object, JsonSchema>();
  private readsBody = false;

  constructor(
    private readonly schemas: OpenApiSchemas,
    private readonly fields: ReadonlyMap<string, GraphQLField<unknown, unknown>>,
    /** True if `bodyProxy` returns a placeholder for every property, so that the handler's optional branches run. */
    private readonly isFilled: boolean,
    private readonly bodyField: string | undefined,
    private readonly isPlan = false,
  ) {}

  /** Receives the HTTP status from handlers whose status depends on the request. */
  readonly context: { httpStatus?: number } = {};

  /** Body as a proxy that records each property which the handler reads. */
  private readonly bodyProxy = new Proxy(this.bodyPlaceholder, {
    get: (_target, name) => {
      if (typeof name !== "string") return undefined;
      if (!this.bodyFieldSchemas.has(name)) this.bodyFieldSchemas.set(name, {});
      return this.isFilled ? new BodyPartPlaceholder(name) : undefined;
    },
  });

  request(): RestRequest {
    const { notes } = this;
    const recordParameter = <T>(kind: "pathParameters" | "queryParameters", name: string, schema: JsonSchema): T => {
      notes[kind].set(name, schema);
      return new ValuePlaceholder(schema) as T;
    };
    const readBody = () => {
      this.readsBody = true;
    };
    const { bodyPlaceholder: wholeBody, bodyProxy } = this;
    return {
      context: this.context as RestRequest["context"],
      get body() {
        readBody();
        return wholeBody;
      },
      // A handler that reads a path parameter with `pathText` gets text and parses it itself, so the schema says string.
      pathText: (name) => {
        notes.pathParameters.set(name, { type: "string" });
        return name;
      },
      pathNames: (name) => {
        notes.pathParameters.set(name, {
          type: "string",
          description: "Names, with commas between them; %2C is a comma in a name.",
        });
        return [name];
      },
      pathId: (name) => recordParameter("pathParameters", name, { type: "integer", minimum: 1 }),
      pathReference: (name) => {
        notes.queryParameters.set("by", BY_PARAMETER_SCHEMA);
        return recordParameter("pathParameters", name, { type: "string" });
      },
      queryNumber: (name) => recordParameter("queryParameters", name, { type: "integer", minimum: 0 }),
      queryText: (name) => recordParameter("queryParameters", name, { type: "string" }),
      queryFlag: (name) => {
        notes.queryParameters.set(name, { type: "boolean", default: false });
        return name === PLAN_PARAMETER && this.isPlan;
      },
      queryStrings: (name) =>
        recordParameter("queryParameters", name, { type: "string", description: "A JSON array of strings." }),
      check: (read) => read(),
      readExpectedVersions() {
        notes.readsIfMatch = true;
        return null as never;
      },
      setTag(_state, answer) {
        notes.setsEtag = true;
        return answer;
      },
      setListTag(_items, answer) {
        notes.setsEtag = true;
        return answer;
      },
      bodyFields() {
        readBody();
        return bodyProxy;
      },
      ignoreBodyFields: () => undefined,
    };
  }

  /** Records which properties of the body the handler passes to which argument of the operation. Returns a placeholder for the result. */
  private recordCall(name: string, values: readonly unknown[]): unknown {
    const field = this.fields.get(name);
    this.notes.operation ??= name;
    this.notes.description ??= field?.description ?? null;
    if (!field) return new ValuePlaceholder({});
    values.slice(1).forEach((value, index) => {
      const type = field.args[index]?.type;
      if (!type) return;
      if (value === this.bodyPlaceholder || value === this.bodyProxy)
        this.notes.requestBodySchema = this.toBodySchema(this.schemas.createNonNullSchema(type));
      if (value instanceof BodyPartPlaceholder)
        this.bodyFieldSchemas.set(value.name, this.schemas.createNonNullSchema(type));
    });
    return this.createPlaceholder(field.type, RESPONSE_DEPTH_MAX);
  }

  private toBodySchema(value: JsonSchema): JsonSchema {
    return this.bodyField === undefined ? value : { type: "object", properties: { [this.bodyField]: value } };
  }

  createResolverRecorder(): never {
    const resolverProxy = new Proxy(
      {},
      {
        get:
          (_target, name) =>
          async (...values: unknown[]) =>
            this.recordCall(String(name), values),
      },
    );
    return new Proxy({}, { get: () => resolverProxy }) as never;
  }

  /** Returns an object with a placeholder for each field of the type, so that handlers can destructure and spread it. */
  private createPlaceholder(type: GraphQLOutputType, depth: number): unknown {
    const nullableType = getNullableType(type);
    const schema = this.schemas.createSchema(type);
    if (isListType(nullableType)) {
      const list = [this.createPlaceholder(nullableType.ofType, depth)];
      this.placeholderSchemas.set(list, schema);
      return list;
    }
    if (!isObjectType(nullableType) || depth === 0) return new ValuePlaceholder(schema);
    const knownProperties = this.schemas.components[nullableType.name]?.["properties"] as
      | Record<string, JsonSchema>
      | undefined;
    const fields = Object.values(nullableType.getFields()).filter(({ name }) => knownProperties?.[name]);
    // Adds the fields that exist only in REST, or that have another type in REST.
    const restProperties = Object.entries(REST_FIELD_OVERRIDES[nullableType.name] ?? {}).map(([name, schema]) => [
      name,
      new ValuePlaceholder(schema),
    ]);
    const object = Object.fromEntries([
      ...fields.map((field) => [field.name, this.createPlaceholder(field.type, depth - 1)]),
      ...restProperties,
    ]);
    this.placeholderSchemas.set(object, schema);
    return object;
  }

  /** Returns the JSON Schema of a value that a handler built from placeholders. */
  private findSchema(value: unknown): JsonSchema {
    if (value instanceof ValuePlaceholder) return value.schema;
    if (value instanceof BodyPartPlaceholder || value === undefined) return {};
    if (typeof value === "string") return { type: "string", const: value };
    if (typeof value !== "object" || value === null) return value === null ? { type: "null" } : { type: typeof value };
    const placeholderSchema = this.placeholderSchemas.get(value);
    if (placeholderSchema) return placeholderSchema;
    if (Array.isArray(value)) return { type: "array", items: value.length > 0 ? this.findSchema(value[0]) : {} };
    if (ANY_NAME in value) return { type: "object", additionalProperties: this.findSchema(value[ANY_NAME]) };
    const properties = Object.fromEntries(Object.entries(value).map(([name, field]) => [name, this.findSchema(field)]));
    const constantNames = Object.keys(properties).filter((name) => "const" in properties[name]!);
    return { type: "object", properties, ...(constantNames.length > 0 && { required: constantNames }) };
  }

  finishRecording(result: unknown): RouteDescription {
    const { notes, bodyFieldSchemas } = this;
    notes.responseSchema = this.findSchema(result);
    if (!this.readsBody || notes.requestBodySchema !== null) return notes;
    notes.requestBodySchema =
      bodyFieldSchemas.size > 0 ? { type: "object", properties: Object.fromEntries(bodyFieldSchemas) } : {};
    return notes;
  }
}

/**
 * Returns a function that records one route. If the handler rejects the placeholder body, the handler is called again with an empty body.
 */
export function createRouteRecorder(
  schema: GraphQLSchema,
  schemas: OpenApiSchemas,
): (route: Route) => Promise<RouteDescription> {
  const fields = new Map(listRootFields(schema).map((field) => [field.name, field]));
  const recordCallOfRoute = async ({ handle: handleRoute, bodyField }: Route, isPlan: boolean) => {
    const filledRecording = new RequestRecording(schemas, fields, true, bodyField, isPlan);
    try {
      const routeNotes = filledRecording.finishRecording(
        await handleRoute(filledRecording.createResolverRecorder(), filledRecording.request()),
      );
      return { routeNotes, http: filledRecording.context.httpStatus };
    } catch {
      const emptyRecording = new RequestRecording(schemas, fields, false, bodyField, isPlan);
      // A handler that rejects an empty body has already read the body's fields, so the recorder ignores the missing response.
      const emptyBodyResult = await handleRoute(
        emptyRecording.createResolverRecorder(),
        emptyRecording.request(),
      ).catch(() => new ValuePlaceholder({}));
      return { routeNotes: emptyRecording.finishRecording(emptyBodyResult), http: emptyRecording.context.httpStatus };
    }
  };
  return async (route) => {
    const { routeNotes } = await recordCallOfRoute(route, false);
    if (!routeNotes.queryParameters.has(PLAN_PARAMETER)) return routeNotes;
    const plan = await recordCallOfRoute(route, true);
    return plan.http === undefined ? routeNotes : { ...routeNotes, planResponseSchema: plan.routeNotes.responseSchema };
  };
}
