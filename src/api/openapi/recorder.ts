/**
 * Records which inputs a row of the REST table reads and returns: it calls the row once with a request and resolvers
 * that only record. So nothing is described twice.
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
import { rootFields } from "../graphql/schema.js";
import type { RestRequest } from "../rest/request.js";
import type { Route } from "../rest/route.js";
import type { Schema, Schemas } from "./schemas.js";

/** Notes about one route. */
export interface RouteNotes {
  /** The operation that it calls first: a field of the GraphQL schema, or a name in its resolver. */
  operation: string | null;
  description: string | null;
  path: Map<string, Schema>;
  query: Map<string, Schema>;
  ifMatch: boolean;
  /** True if it names the state of its response. */
  tagged: boolean;
  /** null: it reads no body. */
  body: Schema | null;
  answer: Schema;
}

/** Maximum depth to which a response is inspected; below it the named type is used. */
const DEPTH_MAX = 3;

const BY: Schema = {
  ...{ type: "string", enum: REFERENCE_KINDS },
  description: "Meaning of the reference in the path; by default digits only are an ID and other text is a name.",
};

const ANY_NAME = "*";

/** A placeholder for any value of a schema. */
class Stand {
  constructor(readonly schema: Schema) {}

  /** As a property name it stands for any. */
  toString(): string {
    return ANY_NAME;
  }
}

/** A property that was read from the body. */
class Part {
  constructor(readonly name: string) {}
}

class Recording {
  readonly notes: RouteNotes = {
    ...{ operation: null, description: null, path: new Map(), query: new Map() },
    ...{ ifMatch: false, tagged: false, body: null, answer: {} },
  };
  /** The body as a whole. */
  private readonly whole = {};
  private readonly parts = new Map<string, Schema>();
  private readonly stands = new WeakMap<object, Schema>();
  private readsBody = false;

  constructor(
    private readonly schemas: Schemas,
    private readonly fields: ReadonlyMap<string, GraphQLField<unknown, unknown>>,
    /** True if properties of the body are assumed to be present. */
    private readonly isFilled: boolean,
    private readonly bodyField: string | undefined,
  ) {}

  /** The body as an object whose properties are recorded as they are read. */
  private readonly object = new Proxy(this.whole, {
    get: (_target, name) => {
      if (typeof name !== "string") return undefined;
      if (!this.parts.has(name)) this.parts.set(name, {});
      return this.isFilled ? new Part(name) : undefined;
    },
  });

  request(): RestRequest {
    const { notes } = this;
    const noted = <T>(where: "path" | "query", name: string, schema: Schema): T => {
      notes[where].set(name, schema);
      return new Stand(schema) as T;
    };
    const readBody = () => {
      this.readsBody = true;
    };
    const { whole, object } = this;
    return {
      context: {} as RestRequest["context"],
      get body() {
        readBody();
        return whole;
      },
      // Rows parse them.
      param: (name) => {
        notes.path.set(name, { type: "string" });
        return name;
      },
      names: (name) => {
        notes.path.set(name, {
          type: "string",
          description: "Names, with commas between them; %2C is a comma in a name.",
        });
        return [name];
      },
      id: (name) => noted("path", name, { type: "integer", minimum: 1 }),
      reference: (name) => {
        notes.query.set("by", BY);
        return noted("path", name, { type: "string" });
      },
      number: (name) => noted("query", name, { type: "integer", minimum: 0 }),
      text: (name) => noted("query", name, { type: "string" }),
      flag: (name) => {
        notes.query.set(name, { type: "boolean", default: false });
        return false;
      },
      strings: (name) => noted("query", name, { type: "string", description: "A JSON array of strings." }),
      check: (read) => read(),
      ifMatch() {
        notes.ifMatch = true;
        return null as never;
      },
      at(_state, answer) {
        notes.tagged = true;
        return answer;
      },
      ofList(_items, answer) {
        notes.tagged = true;
        return answer;
      },
      object() {
        readBody();
        return object;
      },
    };
  }

  /** Records which parts of the body go to which argument, and returns a placeholder for the result. */
  private call(name: string, values: readonly unknown[]): unknown {
    const field = this.fields.get(name);
    this.notes.operation ??= name;
    this.notes.description ??= field?.description ?? null;
    if (!field) return new Stand({});
    values.slice(1).forEach((value, at) => {
      const type = field.args[at]?.type;
      if (!type) return;
      if (value === this.whole || value === this.object) this.notes.body = this.bodySchema(this.schemas.whole(type));
      if (value instanceof Part) this.parts.set(value.name, this.schemas.whole(type));
    });
    return this.placeholderFor(field.type, DEPTH_MAX);
  }

  private bodySchema(value: Schema): Schema {
    return this.bodyField === undefined ? value : { type: "object", properties: { [this.bodyField]: value } };
  }

  resolvers(): never {
    const room = new Proxy(
      {},
      {
        get:
          (_room, name) =>
          async (...values: unknown[]) =>
            this.call(String(name), values),
      },
    );
    return new Proxy({}, { get: () => room }) as never;
  }

  /** An object with the type's fields, so that rows can destructure and spread it. */
  private placeholderFor(type: GraphQLOutputType, depth: number): unknown {
    const plain = getNullableType(type);
    const schema = this.schemas.of(type);
    if (isListType(plain)) {
      const list = [this.placeholderFor(plain.ofType, depth)];
      this.stands.set(list, schema);
      return list;
    }
    if (!isObjectType(plain) || depth === 0) return new Stand(schema);
    const known = this.schemas.components[plain.name]?.["properties"] as Record<string, Schema> | undefined;
    const fields = Object.values(plain.getFields()).filter(({ name }) => known?.[name]);
    const object = Object.fromEntries(fields.map((field) => [field.name, this.placeholderFor(field.type, depth - 1)]));
    this.stands.set(object, schema);
    return object;
  }

  /** Returns the schema of the value that a row built from its placeholders. */
  private schemaOf(value: unknown): Schema {
    if (value instanceof Stand) return value.schema;
    if (value instanceof Part || value === undefined) return {};
    if (typeof value === "string") return { type: "string", const: value };
    if (typeof value !== "object" || value === null) return value === null ? { type: "null" } : { type: typeof value };
    const whole = this.stands.get(value);
    if (whole) return whole;
    if (Array.isArray(value)) return { type: "array", items: value.length > 0 ? this.schemaOf(value[0]) : {} };
    if (ANY_NAME in value) return { type: "object", additionalProperties: this.schemaOf(value[ANY_NAME]) };
    const properties = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, this.schemaOf(one)]));
    const fixed = Object.keys(properties).filter((name) => "const" in properties[name]!);
    return { type: "object", properties, ...(fixed.length > 0 && { required: fixed }) };
  }

  finish(answer: unknown): RouteNotes {
    const { notes, parts } = this;
    notes.answer = this.schemaOf(answer);
    if (!this.readsBody || notes.body !== null) return notes;
    notes.body = parts.size > 0 ? { type: "object", properties: Object.fromEntries(parts) } : {};
    return notes;
  }
}

/** Returns a function that records a row. Rows that check their input are called again with an empty body. */
export function createRecorder(schema: GraphQLSchema, schemas: Schemas): (route: Route) => Promise<RouteNotes> {
  const fields = new Map(rootFields(schema).map((field) => [field.name, field]));
  return async ({ answer, bodyField }) => {
    const filled = new Recording(schemas, fields, true, bodyField);
    try {
      return filled.finish(await answer(filled.resolvers(), filled.request()));
    } catch {
      const empty = new Recording(schemas, fields, false, bodyField);
      // A row that needs a body shows its fields by its error, not by its response.
      const made = await answer(empty.resolvers(), empty.request()).catch(() => new Stand({}));
      return empty.finish(made);
    }
  };
}
