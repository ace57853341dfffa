/**
 * GraphQL resolver of manifests, the documents with all definitions of an app. Each method checks the caller's access and then calls one
 * operation.
 */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, Field, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import { ActionError } from "../../errors.js";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { GenerateAppDeclarations } from "../../operations/manifest/app-declarations.js";
import type {
  DefinitionReference,
  ManifestApplyResponse,
  ManifestPlan,
  Manifests,
} from "../../operations/manifest/manifests.js";
import { type ManifestItemKind, removeNullFields } from "../../rules/manifest.js";
import type { RequestContext } from "../context.js";
import { AppIdArgument } from "./arguments.js";
import { ManifestDefinitionsInput, ManifestDefinitionsType } from "./manifest-types.js";

@ObjectType("Manifest", { description: "Definitions of an app as one document, and the state that they are in." })
class ManifestType {
  @Field(() => String, { description: "Tag of the state, for `ifMatch`." }) tag: string;
  @Field(() => GraphQLJSON, {
    description: "The document, whose JSON Schema is at /schemas/manifest.json; absent fields are absent, not null.",
  })
  @Field(() => ManifestDefinitionsType, { name: "definitions", description: "The definitions." })
  manifest: object;
}

@ObjectType("ManifestItem", { description: "Part of an app that a manifest names." })
class ManifestItemType implements DefinitionReference {
  @Field(() => String, { description: "Kind of the part: app, setting, secretBinding, dataSource, action or alert." })
  kind: ManifestItemKind;
  @Field(() => String, { description: "Name of the part; the key of a setting, the field of the app." }) name: string;
}

@ObjectType("ManifestPlan", { description: "Differences between a manifest and an app." })
export class ManifestPlanType implements ManifestPlan {
  @Field(() => [ManifestItemType], { description: "Parts that the app does not have." }) created: DefinitionReference[];
  @Field(() => [ManifestItemType], { description: "Parts that differ." }) changed: DefinitionReference[];
  @Field(() => [ManifestItemType], { description: "Parts that the manifest does not name, with `prune`." })
  removed: DefinitionReference[];
  @Field(() => [ManifestItemType], {
    nullable: true,
    description: "Secret bindings whose setting needs a value in this app; null if there is none.",
  })
  missing?: DefinitionReference[];
}

@ObjectType("ManifestResult", { description: "Differences that were found or applied." })
class ManifestResultType implements ManifestApplyResponse {
  @Field(() => ManifestPlanType, { description: "The differences." }) plan: ManifestPlan;
  @Field(() => String, { description: "Tag of the app's manifest after this request." }) tag: string;
}

/**
 * Returns the manifest as plain objects, because GraphQL inputs are class instances.
 * @throws REQUEST_INVALID if both `manifest` and `definitions` are present
 */
function toPlainManifest(manifest: unknown, definitions: unknown): unknown {
  if (definitions === undefined || definitions === null) return manifest;
  if (manifest !== undefined && manifest !== null)
    throw new ActionError("REQUEST_INVALID", 'the request must have either "manifest" or "definitions" (got both)');
  const document: unknown = JSON.parse(JSON.stringify(definitions));
  removeNullFields(document);
  return document;
}

@Resolver()
export class ManifestResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly manifests: Manifests,
    private readonly types: GenerateAppDeclarations,
  ) {}

  @Query(() => ManifestType, {
    description: "Returns the definitions of the app: actions, data sources, alerts, settings without secret values.",
  })
  async manifest(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<ManifestType> {
    await this.accessChecks.requireAppAccess(context, "readManifest", appId);
    return this.manifests.get(appId, context.responseBudget?.reserveBytes);
  }

  @Query(() => String, {
    description:
      "Returns TypeScript declarations for the app's actions, as a file svc.d.ts: settings, columns, packages and `Svc`.",
  })
  async appTypes(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<string> {
    await this.accessChecks.requireAppAccess(context, "readManifest", appId);
    return this.types(appId, context.responseBudget?.reserveBytes);
  }

  @Mutation(() => ManifestResultType, {
    description:
      "Applies a manifest to the app: all of it, or nothing. The actions of the manifest are saved as drafts and not published; its other parts apply at once.",
  })
  async applyManifest(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("manifest", () => GraphQLJSON, {
      nullable: true,
      description: "The document; null with `definitions`.",
    })
    manifest: unknown,
    @Arg("ifMatch", () => [String], {
      nullable: true,
      description: "Tags of the manifests that the change may start from; absent for any.",
    })
    ifMatch: readonly string[] | null | undefined,
    @Arg("plan", () => Boolean, {
      defaultValue: false,
      description: "True to report the differences without applying them; false by default.",
    })
    plan: boolean,
    @Arg("prune", () => Boolean, {
      defaultValue: false,
      description:
        "True to remove the definitions of the app that the manifest does not contain; false by default. A removed action loses its live version at once.",
    })
    prune: boolean,
    @Arg("definitions", () => ManifestDefinitionsInput, {
      nullable: true,
      description: "The definitions, up to 1 MB; the REST route has up to 32 MB. Required without `manifest`.",
    })
    definitions?: unknown,
  ): Promise<ManifestApplyResponse> {
    const caller = await this.accessChecks.requireAppAccess(context, "writeManifest", appId);
    await this.manifests.reserveMemory([appId], context.responseBudget?.reserveBytes);
    const document = toPlainManifest(manifest, definitions);
    return this.manifests.apply(caller, document, {
      ...{ appId, prune, keepsData: false, isPlan: plan },
      precondition: ifMatch ?? undefined,
      checkPermission: (operation) => this.accessChecks.recheck(caller, operation, appId),
    });
  }
}
