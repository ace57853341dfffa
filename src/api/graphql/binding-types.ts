/**
 * GraphQL types of secret bindings: credentials that the service adds to an action's requests. Contains only
 * declarations.
 */
import { GraphQLJSON } from "graphql-scalars";
import { Field, InputType, Int, ObjectType } from "type-graphql";
import type { BindingUse, SecretBindingTestResult } from "../../operations/requests/secret-binding-tester.js";
import type { SecretBinding } from "../../rules/secret-bindings.js";
import { DateTime } from "./leaf-types.js";
import { SettingReaderActionType } from "./setting-reader-action.js";

const BINDING_LOCATION_DESCRIPTION =
  "Way in which requests contain the value: header, query, basic, aws-sigv4 or oauth2.";
const BINDING_NAME_DESCRIPTION =
  "Name of the header or parameter; the user for `basic`, service and region such as s3/eu-west-1 for `aws-sigv4`.";
const BINDING_FORMAT_DESCRIPTION =
  "Template of the text to send, with {value} exactly once, such as `Bearer {value}`; for `header` and `query`.";

@ObjectType("SecretBinding", {
  description: "Rule that sends a setting to one origin as a credential, without its value.",
})
class SecretBindingType implements Omit<SecretBinding, "in" | "grant"> {
  @Field(() => String, { description: "Key of the setting." }) key: string;
  @Field(() => String, { description: "Origin that receives the value." }) origin: string;
  @Field(() => String, { description: BINDING_LOCATION_DESCRIPTION }) in: string;
  @Field(() => String, { nullable: true, description: `${BINDING_NAME_DESCRIPTION} Null for the default.` }) name:
    | string
    | null;
  @Field(() => String, { nullable: true, description: `${BINDING_FORMAT_DESCRIPTION} Null for the default.` }) format:
    | string
    | null;
  @Field(() => Boolean, { description: "True if code does not receive the setting." }) sealed: boolean;
  @Field(() => String, { nullable: true, description: "URL of the token endpoint; null unless `in` is oauth2." })
  tokenUrl: string | null;
  @Field(() => String, { nullable: true, description: "ID of the client; null unless `in` is oauth2." })
  clientId: string | null;
  @Field(() => [String], { description: "Scopes that the token has; empty for the default of the endpoint." })
  scopes: string[];
  @Field(() => String, {
    nullable: true,
    description: "Grant of the token: client_credentials or refresh_token; null unless `in` is oauth2.",
  })
  grant: string | null;
}

@ObjectType("SecretBindings", { description: "Secret bindings of an app." })
export class SecretBindingsType {
  @Field(() => [SecretBindingType], { description: "Bindings in the order in which the last change listed them." })
  bindings: SecretBindingType[];
  @Field(() => DateTime, { description: "Time of the last change." }) updatedAt: string;
}

@ObjectType("SecretBindingUse", { description: "Secret binding and the actions that use it." })
export class SecretBindingUseType implements Omit<BindingUse, "actions"> {
  @Field(() => String, { description: "Key of the setting." }) key: string;
  @Field(() => String, { description: "Origin that receives the value." }) origin: string;
  @Field(() => [SettingReaderActionType], {
    description: "Drafts that list the origin and whose code names the key, by name; at most 1,000 for all bindings.",
  })
  actions: BindingUse["actions"];
}

@ObjectType("SecretBindingTrial", { description: "Result of a request that tested a secret binding." })
export class SecretBindingTrialType implements SecretBindingTestResult {
  @Field(() => Int, { nullable: true, description: "Status of the response; null without one." }) status: number | null;
  @Field(() => Int, { description: "Duration in milliseconds." }) durationMs: number;
  @Field(() => Int, { description: "Size of the decoded response body in bytes." }) receivedBytes: number;
  @Field(() => String, {
    nullable: true,
    description: "First 4,000 characters of the response body, without bound values; null without a response.",
  })
  body: string | null;
  @Field(() => String, { nullable: true, description: "Code of `request()` such as TRANSPORT; null with a response." })
  code: string | null;
  @Field(() => String, { nullable: true, description: "Message of the failure; null with a response." })
  error: string | null;
}

@InputType("SecretBindingTestInput", { description: "Request that tests a secret binding." })
export class SecretBindingTestInput {
  @Field(() => String, { nullable: true, description: "Key of the binding; required." }) key?: unknown;
  @Field(() => String, { nullable: true, description: "Origin of the binding; required." }) origin?: unknown;
  @Field(() => String, { nullable: true, description: "GET, HEAD or POST; GET by default." }) method?: unknown;
  @Field(() => String, {
    nullable: true,
    description: 'Path and query string of the test request, for example /v1/me?page=2; "/" by default.',
  })
  path?: unknown;
}

@InputType("SecretBindingInput", { description: "Rule that sends a setting to one origin as a credential." })
export class SecretBindingInput {
  @Field(() => String, { nullable: true, description: "Key of a private or protected setting; required." })
  key?: unknown;
  @Field(() => String, { nullable: true, description: "Origin that receives the value; required." }) origin?: unknown;
  @Field(() => String, { nullable: true, description: `${BINDING_LOCATION_DESCRIPTION} Required.` }) in?: unknown;
  @Field(() => String, { nullable: true, description: BINDING_NAME_DESCRIPTION }) name?: unknown;
  @Field(() => String, { nullable: true, description: BINDING_FORMAT_DESCRIPTION }) format?: unknown;
  @Field(() => Boolean, {
    nullable: true,
    description:
      "True to seal the setting, so that code does not receive it; only for keys that start with __. False by default.",
  })
  sealed?: unknown;
  @Field(() => String, { nullable: true, description: "URL of the token endpoint; for oauth2 only." })
  tokenUrl?: unknown;
  @Field(() => String, { nullable: true, description: "ID of the client; for oauth2 only." }) clientId?: unknown;
  @Field(() => [String], { nullable: "itemsAndList", description: "Scopes of the token; for oauth2 only." })
  scopes?: unknown;
  @Field(() => String, {
    nullable: true,
    description: "Grant of the token: client_credentials or refresh_token; for oauth2 only.",
  })
  grant?: unknown;
  @Field(() => GraphQLJSON, {
    nullable: true,
    description:
      "New value of the setting; required to unseal a sealed setting, or to send it in another way or to another origin.",
  })
  value?: unknown;
}
