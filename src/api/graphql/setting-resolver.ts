/**
 * GraphQL resolver of an app's settings. Callers get public settings, and private settings if their role allows it. No caller gets
 * protected settings.
 */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, Field, Int, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import type { DraftOrLive } from "../../data/action-types.js";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type {
  SettingStatus,
  Settings,
  SettingsUse,
  SettingsWithUpdateTime,
} from "../../operations/settings/settings.js";
import { mayPerformOnApp } from "../../rules/access.js";
import type { AppSession } from "../../rules/app-session.js";
import type { PageEnv, PageEnvWithSession } from "../../rules/env-script.js";
import type { SettingsByKey } from "../../rules/setting-tiers.js";
import type { RequestContext } from "../context.js";
import { AppIdArgument } from "./arguments.js";
import { type ChangePrecondition, IfUpdatedAtArgument, toExpectedVersions } from "./if-updated-at.js";
import { DateTime, DraftOrLiveEnum, RuntimeEnvironmentEnum } from "./leaf-types.js";
import { SettingReaderActionType } from "./setting-reader-action.js";

@ObjectType("SettingStatus", { description: "State of a setting without its value." })
class SettingStatusType {
  @Field(() => String, { description: "Key of the setting." }) key: string;
  @Field(() => Boolean, { description: "True if the setting has a value." }) configured: boolean;
  @Field(() => DateTime, { nullable: true, description: "Time of the last change; null if the setting has no value." })
  updatedAt: string | null;
  @Field(() => Int, { nullable: true, description: "ID of the person who changed it last; null if no person did." })
  updatedBy: number | null;
  @Field(() => Boolean, { description: "True if the value is removed from everything that a run returns or logs." })
  secret: boolean;
}

@ObjectType("AppSessionUser", { description: "Person with an account who uses a page." })
class AppSessionUserType {
  @Field(() => Int, { description: "ID of the person." }) id: number;
  @Field(() => String, { description: "First name." }) firstName: string;
  @Field(() => String, { description: "Last name." }) lastName: string;
  @Field(() => String, { description: "E-mail address." }) email: string;
}

@ObjectType("VerifiedAddresses", { description: "Addresses that a code verified after the sign-in." })
class VerifiedAddressesType {
  @Field(() => DateTime, {
    nullable: true,
    description: "Time when the e-mail address was verified; null if it is not verified.",
  })
  email?: string;
  @Field(() => DateTime, {
    nullable: true,
    description: "Time when the phone number was verified; null if it is not verified.",
  })
  sms?: string;
}

@ObjectType("AppSessionEntry", { description: "Data source entry with which the user signed in to the page." })
class AppSessionEntryType {
  @Field(() => Int, { description: "ID of the entry." }) id: number;
  @Field(() => Int, { description: "ID of the data source." }) dataSourceId: number;
  @Field(() => GraphQLJSON, { description: "Values of the entry by column, without hashed columns." }) data: unknown;
  @Field(() => VerifiedAddressesType, { nullable: true, description: "Verified addresses; null if there are none." })
  verified?: VerifiedAddressesType;
}

@ObjectType("AppSessionEntries", { description: "Entries with which the user signed in to the page." })
class AppSessionEntriesType {
  @Field(() => AppSessionEntryType, { nullable: true, description: "Entry of the app's users; null if there is none." })
  dataSource?: AppSessionEntryType;
}

@ObjectType("AppSession", { description: "Session of a page, like `Svc.Session.get()`." })
export class AppSessionType {
  @Field(() => Int, { description: "ID of the app." }) appId: number;
  @Field(() => AppSessionUserType, {
    nullable: true,
    description: "Person with an account who uses the page; null for anonymous users.",
  })
  user: AppSessionUserType | null;
  @Field(() => DraftOrLiveEnum, { description: "Drafts or live versions of actions that the page runs." })
  environment: DraftOrLive;
  @Field(() => AppSessionEntriesType, {
    nullable: true,
    description: "Entries with which the user signed in; null if no user is signed in.",
  })
  entries?: AppSessionEntriesType;
  @Field(() => String, {
    nullable: true,
    description: "Step that completes the sign-in: secondFactor; null if no step is missing.",
  })
  awaits?: "secondFactor";
}

@ObjectType("RuntimeEnv", { description: "Environment of a page, which `env.js` assigns to `window.ENV`." })
class RuntimeEnvType {
  @Field(() => Int, { description: "ID of the app." }) appId: number;
  @Field(() => String, { description: "Base URL of the service." }) apiUrl: string;
  @Field(() => RuntimeEnvironmentEnum, { description: "Environment in which the page runs." }) environment:
    | "viewer"
    | "live";
  @Field(() => GraphQLJSON, { description: "Object of public settings." }) appSettings: SettingsByKey;
  @Field(() => Int, { description: "Maximum duration of a client action in milliseconds." }) clientTimeoutMs: number;
  @Field(() => AppSessionType, { description: "Session of the page." }) session: AppSession;
}

@ObjectType("SettingsUse", { description: "Size of an app's settings, and the actions that read one of them." })
class SettingsUseType {
  @Field(() => Int, {
    description:
      "Total size in bytes of the private and protected settings that server actions receive, so without sealed settings and `__ai`.",
  })
  underscoreBytes: number;
  @Field(() => Int, { description: "Maximum of `underscoreBytes` in bytes; above it no server action can run." })
  underscoreMaxBytes: number;
  @Field(() => [SettingReaderActionType], {
    description: "Actions whose draft contains the key as a word, by name, at most 100; empty if no key is requested.",
  })
  readers: SettingsUse["readers"];
}

/** Returns the settings, and stores the time of their last change in the context, for REST's ETag. */
function unwrapTaggedSettings(context: RequestContext, { settings, updatedAt }: SettingsWithUpdateTime): SettingsByKey {
  context.updatedAt = updatedAt;
  return settings;
}

@Resolver()
export class SettingResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly service: Settings,
  ) {}

  @Query(() => GraphQLJSON, {
    description:
      "Returns the public settings as an object. Callers who may change settings also get the private ones. Protected settings are never returned.",
  })
  async settings(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<SettingsByKey> {
    const caller = await this.accessChecks.requireAppAccess(context, "readSettings", appId);
    // Callers who may read but not write settings get only public settings, as a page of the app does.
    const mayReadPrivate = mayPerformOnApp(caller, "writeSettings", appId);
    return unwrapTaggedSettings(
      context,
      await (mayReadPrivate
        ? this.service.readResponseSettingsWithTime(appId)
        : this.service.readPublicSettings(appId)),
    );
  }

  @Query(() => DateTime, {
    description: "Returns the time of the last change of any setting, for the `ifUpdatedAt` of the next change.",
  })
  async settingsUpdatedAt(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<string> {
    await this.accessChecks.requireAppAccess(context, "readSettings", appId);
    return this.service.readUpdateTime(appId);
  }

  @Query(() => RuntimeEnvType, {
    description: "Returns the environment of a page; editors and administrators get that of the viewer.",
  })
  async runtimeEnv(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<PageEnvWithSession> {
    const caller = await this.accessChecks.requireAppAccess(context, "readRuntimeSettings", appId);
    return this.service.buildPageEnv(caller, appId);
  }

  /**
   * Returns the public values for `env.js` on a page of another origin. Only REST has this operation.
   * @throws ActionError UNAUTHORIZED if the app is not published
   */
  publicEnv(appId: number): Promise<PageEnv> {
    return this.service.buildPublicPageEnv(appId);
  }

  @Query(() => SettingsUseType, {
    description: "Returns the size of the private and protected settings, and the actions that read a given setting.",
  })
  async settingsUse(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("key", () => String, {
      nullable: true,
      description: "Key of the setting for which to list the actions that read it; null to list no actions.",
    })
    key?: string | null,
  ): Promise<SettingsUse> {
    await this.accessChecks.requireAppAccess(context, "readSettingsUse", appId);
    return this.service.readUse(appId, key ?? null);
  }

  @Query(() => [SettingStatusType], { description: "Returns which settings have a value, without the values." })
  async settingsStatus(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("keys", () => [String], {
      nullable: true,
      description: "Keys of the settings; all private and protected keys by default.",
    })
    keys?: string[] | null,
  ): Promise<SettingStatus[]> {
    await this.accessChecks.requireAppAccess(context, "readSettingsStatus", appId);
    return this.service.readStatus(appId, keys ?? null);
  }

  @Mutation(() => GraphQLJSON, {
    description: "Sets the given keys, keeps all other settings and returns the public and private settings.",
  })
  async setSettings(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("settings", () => GraphQLJSON, { description: "Object of keys and values, which replace the stored values." })
    settings: unknown,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<SettingsByKey> {
    const caller = await this.accessChecks.requireAppAccess(context, "writeSettings", appId);
    return unwrapTaggedSettings(
      context,
      await this.service.set(caller, { appId, precondition: toExpectedVersions(ifUpdatedAt) }, settings),
    );
  }

  @Mutation(() => GraphQLJSON, {
    description: "Deletes settings by key and returns the remaining public and private settings.",
  })
  async deleteSettings(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("keys", () => [String], { description: "Keys of the settings." }) keys: unknown,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<SettingsByKey> {
    const caller = await this.accessChecks.requireAppAccess(context, "writeSettings", appId);
    return unwrapTaggedSettings(
      context,
      await this.service.remove(caller, { appId, precondition: toExpectedVersions(ifUpdatedAt) }, { keys }),
    );
  }

  @Mutation(() => [SettingStatusType], {
    description:
      "Marks private settings as secret or as not secret. By default, they are secret: the service searches the output of runs for their values. Each setting must have a value.",
  })
  async markSettings(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("keys", () => [String], { description: "Keys of the private settings." }) keys: unknown,
    @Arg("secret", () => Boolean, {
      description: "True to remove the values from everything that a run returns or logs.",
    })
    secret: unknown,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<SettingStatus[]> {
    const caller = await this.accessChecks.requireAppAccess(context, "markSettings", appId);
    return this.service.mark(caller, { appId, precondition: toExpectedVersions(ifUpdatedAt) }, { keys, secret });
  }

  @Mutation(() => String, {
    description:
      "Stores a value as a private setting, and returns its key, `_aiartifact_` and the name of the field. Replaces the setting if the key exists. Tools that generate apps use this operation.",
  })
  async setSecureField(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("settingKey", () => String, { description: "Name of the field." }) settingKey: unknown,
    @Arg("value", () => GraphQLJSON, { description: "Value of the field." }) value: unknown,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<string> {
    const caller = await this.accessChecks.requireAppAccess(context, "writeSettings", appId);
    return this.service.setArtifact(
      caller,
      { appId, precondition: toExpectedVersions(ifUpdatedAt) },
      settingKey,
      value,
    );
  }
}
