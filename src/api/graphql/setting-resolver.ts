/** Settings over GraphQL: each reader its tiers, as the operations give them. */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, Field, Int, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import type { Copy } from "../../data/action-types.js";
import type { Gate } from "../../operations/access/gate.js";
import type { SettingStatus, Settings, SettingsAt, SettingsUse } from "../../operations/settings/settings.js";
import type { AppSession, PublicEnv, RuntimeEnv } from "../../rules/env-script.js";
import type { SettingsView } from "../../rules/setting-tiers.js";
import type { RequestContext } from "../context.js";
import { AppId } from "./arguments.js";
import { IfUpdatedAt, preconditionOf, type StateGiven } from "./if-updated-at.js";
import { CopyEnum, DateTime, RuntimeEnvironmentEnum } from "./leaf-types.js";

@ObjectType("SettingStatus", { description: "Whether a key is set, since when and by whom: never its value." })
class SettingStatusType {
  @Field(() => String) key: string;
  @Field(() => Boolean) configured: boolean;
  @Field(() => DateTime, { nullable: true }) updatedAt: string | null;
  @Field(() => Int, { nullable: true }) updatedBy: number | null;
  @Field(() => Boolean, { description: "Whether no run may let its value out." }) secret: boolean;
}

@ObjectType("AppSessionUser")
class AppSessionUserType {
  @Field(() => Int) id: number;
  @Field(() => String) firstName: string;
  @Field(() => String) lastName: string;
  @Field(() => String) email: string;
}

@ObjectType("VerifiedAddresses", { description: "When a code has proven an address, since the sign-in." })
class VerifiedAddressesType {
  @Field(() => DateTime, { nullable: true }) email?: string;
  @Field(() => DateTime, { nullable: true }) sms?: string;
}

@ObjectType("AppSessionEntry", { description: "The entry by which the page's user signed in." })
class AppSessionEntryType {
  @Field(() => Int) id: number;
  @Field(() => Int) dataSourceId: number;
  @Field(() => GraphQLJSON, { description: "Without hashed columns." }) data: unknown;
  @Field(() => VerifiedAddressesType, { nullable: true }) verified?: VerifiedAddressesType;
}

@ObjectType("AppSessionEntries")
class AppSessionEntriesType {
  @Field(() => AppSessionEntryType, { nullable: true }) dataSource?: AppSessionEntryType;
}

@ObjectType("AppSession", { description: "Who a page works for: what `Svc.Session.get()` gives." })
export class AppSessionType {
  @Field(() => Int) appId: number;
  @Field(() => AppSessionUserType, { nullable: true, description: "null: a visitor without a name" })
  user: AppSessionUserType | null;
  @Field(() => CopyEnum) environment: Copy;
  @Field(() => AppSessionEntriesType, { nullable: true, description: "null: nobody is signed in to the page." })
  entries?: AppSessionEntriesType;
  @Field(() => String, { nullable: true, description: "secondFactor: who has signed in has still to prove it." })
  awaits?: "secondFactor";
}

@ObjectType("RuntimeEnv", { description: "What `env.js` sets `window.ENV` to." })
class RuntimeEnvType {
  @Field(() => Int) appId: number;
  @Field(() => String) apiUrl: string;
  @Field(() => RuntimeEnvironmentEnum) environment: "viewer" | "live";
  @Field(() => GraphQLJSON, { description: "Public keys alone." }) appSettings: SettingsView;
  @Field(() => Int, { description: "Milliseconds that a client action may take." }) clientTimeoutMs: number;
  @Field(() => AppSessionType) session: AppSession;
}

@ObjectType("SettingReader", { description: "An action whose code names the key." })
class SettingReaderType {
  @Field(() => Int) id: number;
  @Field(() => String) name: string;
}

@ObjectType("SettingsUse")
class SettingsUseType {
  @Field(() => Int, { description: "Of all private and protected settings, as server actions are given them." })
  underscoreBytes: number;
  @Field(() => Int, { description: "Beyond it no server action runs." }) underscoreMaxBytes: number;
  @Field(() => [SettingReaderType], {
    description:
      "By name, 100 at most: the masters whose code has the asked key as a word; none where no key is asked about.",
  })
  readers: SettingsUse["readers"];
}

/** The settings, whose state REST names in the ETag. */
function shown(context: RequestContext, { settings, updatedAt }: SettingsAt): SettingsView {
  context.updatedAt = updatedAt;
  return settings;
}

@Resolver()
export class SettingResolver {
  constructor(
    private readonly gate: Gate,
    private readonly service: Settings,
  ) {}

  @Query(() => GraphQLJSON, { description: "Public and private settings; protected ones for nobody." })
  async settings(@Ctx() context: RequestContext, @AppId() appId: number): Promise<SettingsView> {
    await this.gate.enter(context, "readSettings", appId);
    return shown(context, await this.service.httpAt(appId));
  }

  @Query(() => DateTime, {
    description:
      "The last change of any setting of the app: the `ifUpdatedAt` of a change that starts from what `settings` shows now.",
  })
  async settingsUpdatedAt(@Ctx() context: RequestContext, @AppId() appId: number): Promise<string> {
    await this.gate.enter(context, "readSettings", appId);
    return this.service.updatedAt(appId);
  }

  @Query(() => RuntimeEnvType, {
    description: "What an app user's page may know; editors and admins see the viewer's.",
  })
  async runtimeEnv(@Ctx() context: RequestContext, @AppId() appId: number): Promise<RuntimeEnv> {
    const caller = await this.gate.enter(context, "readRuntimeSettings", appId);
    return this.service.runtimeEnv(caller, appId);
  }

  /** For REST only: `env.js` on a page of another origin. @throws UNAUTHORIZED unless the app is published */
  publicEnv(appId: number): Promise<PublicEnv> {
    return this.service.publicEnv(appId);
  }

  @Query(() => SettingsUseType, { description: "How much room settings take, and which actions read one of them." })
  async settingsUse(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("key", () => String, { nullable: true }) key?: string | null,
  ): Promise<SettingsUse> {
    await this.gate.enter(context, "readSettingsUse", appId);
    return this.service.use(appId, key ?? null);
  }

  @Query(() => [SettingStatusType], {
    description: "Which keys are set, never a value; all underscore keys when none are named.",
  })
  async settingsStatus(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("keys", () => [String], { nullable: true }) keys?: string[] | null,
  ): Promise<SettingStatus[]> {
    await this.gate.enter(context, "readSettingsStatus", appId);
    return this.service.status(appId, keys ?? null);
  }

  @Mutation(() => GraphQLJSON, {
    description: "Sets the listed keys whole, keeps the others; answers as `settings` does.",
  })
  async setSettings(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("settings", () => GraphQLJSON) settings: unknown,
    @IfUpdatedAt() ifUpdatedAt?: StateGiven,
  ): Promise<SettingsView> {
    const caller = await this.gate.enter(context, "writeSettings", appId);
    return shown(
      context,
      await this.service.set(caller, { appId, precondition: preconditionOf(ifUpdatedAt) }, settings),
    );
  }

  @Mutation(() => GraphQLJSON, { description: "Removes top-level keys; answers as `settings` does." })
  async deleteSettings(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("keys", () => [String]) keys: unknown,
    @IfUpdatedAt() ifUpdatedAt?: StateGiven,
  ): Promise<SettingsView> {
    const caller = await this.gate.enter(context, "writeSettings", appId);
    return shown(
      context,
      await this.service.remove(caller, { appId, precondition: preconditionOf(ifUpdatedAt) }, { keys }),
    );
  }

  @Mutation(() => [SettingStatusType], {
    description:
      "Says of private settings whether they are secrets, which no run may let out; they are until it is said.",
  })
  async markSettings(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("keys", () => [String]) keys: unknown,
    @Arg("secret", () => Boolean) secret: unknown,
    @IfUpdatedAt() ifUpdatedAt?: StateGiven,
  ): Promise<SettingStatus[]> {
    const caller = await this.gate.enter(context, "markSettings", appId);
    return this.service.mark(caller, { appId, precondition: preconditionOf(ifUpdatedAt) }, { keys, secret });
  }

  @Mutation(() => String, {
    description: "Stores a secure field of the AI builder; answers with its key, `_aiartifact_…`.",
  })
  async setSecureField(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("settingKey", () => String) settingKey: unknown,
    @Arg("value", () => GraphQLJSON) value: unknown,
    @IfUpdatedAt() ifUpdatedAt?: StateGiven,
  ): Promise<string> {
    const caller = await this.gate.enter(context, "writeSettings", appId);
    return this.service.setArtifact(caller, { appId, precondition: preconditionOf(ifUpdatedAt) }, settingKey, value);
  }
}
