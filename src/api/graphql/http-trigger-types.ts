/** GraphQL types of HTTP triggers, for output and input. Contains only declarations; rules/http checks the input. */
import { Field, InputType, Int, ObjectType } from "type-graphql";
import type { HttpAuth, HttpMethod, HttpWhere } from "../../data/action-types.js";
import type { TriggerEndpoint } from "../../operations/http/endpoints.js";
import { createGraphqlEnum } from "./leaf-types.js";

export const HttpMethodEnum = createGraphqlEnum<HttpMethod>(
  "HttpMethod",
  "HTTP method of the requests that a trigger accepts.",
  {
    GET: "GET. Also accepts HEAD, unless another trigger of the same path accepts it.",
    HEAD: "HEAD.",
    POST: "POST.",
    PUT: "PUT.",
    PATCH: "PATCH.",
    DELETE: "DELETE.",
  },
);

export const HttpAuthTypeEnum = createGraphqlEnum<HttpAuth["type"]>(
  "HttpAuthType",
  "Kind of authentication of the requests to an HTTP trigger.",
  {
    none: "No authentication.",
    secret: "A random secret as the last segment of the URL.",
    basic: "User name and password, as stored in a setting.",
    bearer: "An API token of the app that may run actions.",
    signature: "A signature of the body. The secret for it is stored in a setting.",
  },
);

const HTTP_FIELD_DESCRIPTIONS = {
  auth: "Method by which the trigger authenticates requests.",
  cors: "Origins whose pages may read the response; null for none.",
  respond:
    "`result` responds with the run's result, `immediately` with 202 when the run is stored; null means `result`.",
  idempotencyHeader:
    "Header with the ID of the event, by which the service recognizes repeats. If null, the service uses the ID of the signature's scheme; without a scheme, it recognizes no repeats.",
  method: "HTTP method of the requests that the trigger accepts; null for all methods.",
  path: "Path of one to eight segments. A segment such as `:name` matches any text.",
  origins: "Origins such as https://shop.example.",
  type: "Kind of authentication.",
  setting: "Key of the private or protected setting that holds the secret; for `basic` and `signature`.",
  scheme:
    "Scheme of a signature: standard-webhooks, stripe, github, slack, shopify, twilio, sendgrid or hmac; null for other kinds of authentication.",
  tolerance: "Maximum difference in seconds between the signed time and now; 300 by default.",
  header: "Header with the signature; for `hmac`.",
  algorithm: "Digest of `hmac`: sha1, sha256 or sha512; sha256 by default.",
  encoding: "Text form of the signature of `hmac`: hex or base64; hex by default.",
  prefix: "Text before the signature of `hmac`; null for none.",
  timestampHeader:
    "Header with the time that the `hmac` signature covers before the body; null if the signature covers no time.",
} as const;

@ObjectType("HttpAuth", { description: "Authentication of the requests to an HTTP trigger." })
export class HttpAuthType {
  @Field(() => HttpAuthTypeEnum, { description: HTTP_FIELD_DESCRIPTIONS.type }) type: HttpAuth["type"];
  @Field(() => String, { nullable: true, description: HTTP_FIELD_DESCRIPTIONS.setting }) setting?: string;
  @Field(() => String, { nullable: true, description: HTTP_FIELD_DESCRIPTIONS.scheme }) scheme?: string;
  @Field(() => Int, { nullable: true, description: HTTP_FIELD_DESCRIPTIONS.tolerance }) toleranceSeconds?: number;
  @Field(() => String, { nullable: true, description: HTTP_FIELD_DESCRIPTIONS.header }) header?: string;
  @Field(() => String, { nullable: true, description: HTTP_FIELD_DESCRIPTIONS.algorithm }) algorithm?: string;
  @Field(() => String, { nullable: true, description: HTTP_FIELD_DESCRIPTIONS.encoding }) encoding?: string;
  @Field(() => String, { nullable: true, description: HTTP_FIELD_DESCRIPTIONS.prefix }) prefix?: string;
  @Field(() => String, { nullable: true, description: HTTP_FIELD_DESCRIPTIONS.timestampHeader })
  timestampHeader?: string;
}

@ObjectType("HttpCors", { description: "Origins whose pages may read the response of an HTTP trigger." })
export class HttpCorsType {
  @Field(() => [String], { description: HTTP_FIELD_DESCRIPTIONS.origins }) origins: string[];
}

/** Fields of a trigger's `where` that only HTTP triggers have; null for triggers of other types. */
@ObjectType()
export abstract class HttpWhereFields implements Partial<HttpWhere> {
  @Field(() => HttpMethodEnum, {
    nullable: true,
    description: `${HTTP_FIELD_DESCRIPTIONS.method} For \`http\` triggers.`,
  })
  method?: HttpMethod;
  @Field(() => String, { nullable: true, description: `${HTTP_FIELD_DESCRIPTIONS.path} For \`http\` triggers.` })
  path?: string;
  @Field(() => HttpAuthType, { nullable: true, description: `${HTTP_FIELD_DESCRIPTIONS.auth} For \`http\` triggers.` })
  auth?: HttpAuth;
  @Field(() => HttpCorsType, { nullable: true, description: `${HTTP_FIELD_DESCRIPTIONS.cors} For \`http\` triggers.` })
  cors?: HttpCorsType;
  @Field(() => String, { nullable: true, description: `${HTTP_FIELD_DESCRIPTIONS.respond} For \`http\` triggers.` })
  respond?: "immediately" | "result";
  @Field(() => String, {
    nullable: true,
    description: `${HTTP_FIELD_DESCRIPTIONS.idempotencyHeader} For \`http\` triggers.`,
  })
  idempotencyHeader?: string;
}

@ObjectType("Endpoint", { description: "Address of one HTTP trigger." })
export class EndpointType implements TriggerEndpoint {
  @Field(() => HttpMethodEnum, { nullable: true, description: HTTP_FIELD_DESCRIPTIONS.method })
  method: HttpMethod | null;
  @Field(() => String, { description: "URL of the live version, with the secret if the trigger has one." }) url: string;
  @Field(() => String, { description: "URL of the draft, for editors." }) draftUrl: string;
}

@InputType("HttpAuthInput", { description: "Authentication of the requests to an HTTP trigger." })
class HttpAuthInput {
  @Field(() => HttpAuthTypeEnum, { nullable: true, description: `${HTTP_FIELD_DESCRIPTIONS.type} Required.` })
  type?: unknown;
  @Field(() => String, { nullable: true, description: HTTP_FIELD_DESCRIPTIONS.setting }) setting?: unknown;
  @Field(() => String, { nullable: true, description: HTTP_FIELD_DESCRIPTIONS.scheme }) scheme?: unknown;
  @Field(() => Int, { nullable: true, description: HTTP_FIELD_DESCRIPTIONS.tolerance }) toleranceSeconds?: unknown;
  @Field(() => String, { nullable: true, description: HTTP_FIELD_DESCRIPTIONS.header }) header?: unknown;
  @Field(() => String, { nullable: true, description: HTTP_FIELD_DESCRIPTIONS.algorithm }) algorithm?: unknown;
  @Field(() => String, { nullable: true, description: HTTP_FIELD_DESCRIPTIONS.encoding }) encoding?: unknown;
  @Field(() => String, { nullable: true, description: HTTP_FIELD_DESCRIPTIONS.prefix }) prefix?: unknown;
  @Field(() => String, { nullable: true, description: HTTP_FIELD_DESCRIPTIONS.timestampHeader })
  timestampHeader?: unknown;
}

@InputType("HttpCorsInput", { description: "Origins whose pages may read the response of an HTTP trigger." })
class HttpCorsInput {
  @Field(() => [String], { nullable: "itemsAndList", description: `${HTTP_FIELD_DESCRIPTIONS.origins} Required.` })
  origins?: unknown;
}

@InputType()
export abstract class HttpWhereInputFields {
  @Field(() => HttpMethodEnum, {
    nullable: true,
    description: `${HTTP_FIELD_DESCRIPTIONS.method} For \`http\` triggers.`,
  })
  method?: unknown;
  @Field(() => String, {
    nullable: true,
    description: `${HTTP_FIELD_DESCRIPTIONS.path} Required for \`http\` triggers.`,
  })
  path?: unknown;
  @Field(() => HttpAuthInput, {
    nullable: true,
    description: `${HTTP_FIELD_DESCRIPTIONS.auth} Required for \`http\` triggers.`,
  })
  auth?: unknown;
  @Field(() => HttpCorsInput, { nullable: true, description: `${HTTP_FIELD_DESCRIPTIONS.cors} For \`http\` triggers.` })
  cors?: unknown;
  @Field(() => String, { nullable: true, description: `${HTTP_FIELD_DESCRIPTIONS.respond} For \`http\` triggers.` })
  respond?: unknown;
  @Field(() => String, {
    nullable: true,
    description: `${HTTP_FIELD_DESCRIPTIONS.idempotencyHeader} For \`http\` triggers.`,
  })
  idempotencyHeader?: unknown;
}
