/**
 * Validates the data that an author sends for an action: the fields, the code, and the dependencies. If there are
 * several errors, throws the one that comes first in the validation table (rules/validation-table.ts).
 */
import type { EntityManager } from "typeorm";
import type { ActionRow } from "../../data/action.js";
import type { StoredAsset } from "../../data/action-types.js";
import { ActionError, type Status } from "../../errors.js";
import { type CheckActionCode, findDependenciesFault } from "../../rules/action-fields.js";
import { ACTION_SHAPE, type ActionInput, parseActionUpdate, parseNewAction } from "../../rules/action-input.js";
import { findParseResultFault } from "../../rules/code.js";
import { isObject } from "../../rules/describe-value.js";
import { findTriggersFault, toStoredTriggers } from "../../rules/trigger-input.js";
import { refuseUnknownFields } from "../../rules/unknown-fields.js";
import { getValidationTableIndex } from "../../rules/validation-table.js";
import { findRouteConflictError } from "../http/routes.js";
import {
  type DependencyResolver,
  type ExportedAssets,
  NO_EXPORTED_ASSETS,
  NO_RESOLVED_DEPENDENCIES,
  type ResolvedDependencies,
} from "../packages/packages.js";
import type { ScriptQuotaRequest } from "../packages/script-quota.js";
import { createNameTakenError, isNameTaken, pickAuthoredFields } from "./action-rows.js";
import type { CodeChecker } from "./code-checker.js";
import type { ActionDataWithBuiltCode, SourceBuilds } from "./source-builds.js";
import type { StoredDraftSnapshot } from "./versions.js";

export interface ValidatedAction {
  input: ActionInput;
  /** Scripts that the service loads for the action's dependencies. */
  assets: StoredAsset[];
}

const isText = (code: unknown): code is string => typeof code === "string";

function readProperty(data: unknown, key: string): unknown {
  return isObject(data) && Object.hasOwn(data, key) ? data[key] : undefined;
}

interface ActionValidationOptions {
  codeChecker: CodeChecker;
  sourceBuilds: SourceBuilds;
  packages: DependencyResolver;
  serverTimeoutMs: number;
  allowPrivateNetwork: boolean;
}

/** Rejects unknown fields. Call this function after all other checks, so that other errors take precedence. @throws REQUEST_INVALID */
function requireKnownFields(data: unknown, validatedAction: ValidatedAction): ValidatedAction {
  refuseUnknownFields(data, ACTION_SHAPE);
  return validatedAction;
}

/**
 * Runs `validate`, and checks that no other action uses the URL paths. If several checks fail, throws the error that is first in the
 * validation table. For this reason, also checks the name for duplicates after `validate` has failed.
 */
async function validateWithFreeNameAndPaths(
  manager: EntityManager,
  draftScope: { appId: number; exceptId: number | null; rewrittenIds: readonly number[] },
  data: unknown,
  validate: () => Promise<ValidatedAction>,
): Promise<ValidatedAction> {
  const { appId, exceptId, rewrittenIds } = draftScope;
  const draftFilter = {
    appId,
    isDraft: true,
    ignoredActionIds: [...rewrittenIds, ...(exceptId === null ? [] : [exceptId])],
  };
  const validatedAction = await validate().catch(async (error: unknown) => {
    if (!(error instanceof ActionError)) throw error;
    const isAfter = (status: Status) => getValidationTableIndex(error.status) > getValidationTableIndex(status);
    const [name, triggers] = [readProperty(data, "name"), readProperty(data, "triggers")];
    // Checks the name for duplicates only if `error` comes after NAME_ALREADY_EXISTS in the validation table: then the name is valid.
    if (isAfter("NAME_ALREADY_EXISTS") && isText(name) && (await isNameTaken(manager, appId, name, exceptId))) {
      throw createNameTakenError(name);
    }
    if (isAfter("TRIGGERS_INVALID") && findTriggersFault(triggers) === null) {
      throw (await findRouteConflictError(manager, draftFilter, toStoredTriggers(triggers))) ?? error;
    }
    throw error;
  });
  const routeFault = await findRouteConflictError(manager, draftFilter, validatedAction.input.triggers);
  if (routeFault) throw routeFault;
  return validatedAction;
}

export class ActionValidation {
  private readonly checkOptions = {
    serverTimeoutMs: this.options.serverTimeoutMs,
    allowPrivateNetwork: this.options.allowPrivateNetwork,
  };

  constructor(private readonly options: ActionValidationOptions) {}

  /**
   * Checks the code, and validates all fields with `parse`.
   * @param parse validates the fields; receives a function that returns the error of the code
   * @param storedCode code that is already stored; if the new code is the same, its compiler errors are ignored
   * @param buildFault error from building the code from its source files; null if the code was built
   */
  private async checkInput(
    appId: number,
    code: unknown,
    parse: (checkCode: CheckActionCode) => ActionInput,
    storedCode: string | null,
    buildFault: string | null = null,
  ): Promise<ActionInput> {
    const codeCheckResult = isText(code) ? await this.options.codeChecker.check(appId, code) : null;
    const input = parse((_code, dependencies) =>
      buildFault === null ? findParseResultFault(codeCheckResult!.parseResult, dependencies) : `source: ${buildFault}`,
    );
    if (codeCheckResult?.compileError && input.code !== storedCode) throw codeCheckResult.compileError;
    return input;
  }

  private parseCreatedInput(appId: number, { data, fault }: ActionDataWithBuiltCode) {
    return this.checkInput(
      appId,
      readProperty(data, "code"),
      (checkCode) => parseNewAction(data, { checkCode, ...this.checkOptions }),
      null,
      fault,
    );
  }

  private parseUpdatedInput(current: ActionRow, { data, fault }: ActionDataWithBuiltCode): Promise<ActionInput> {
    const code = readProperty(data, "code") ?? current.code;
    const parse = (checkCode: CheckActionCode) =>
      parseActionUpdate(data, pickAuthoredFields(current), { checkCode: checkCode, ...this.checkOptions });
    return this.checkInput(current.appId, code, parse, current.code, fault);
  }

  /** Resolves the dependencies of an action with source files before the code is built, because the build needs these packages. */
  private async resolveSourceDependencies(
    author: ScriptQuotaRequest,
    data: unknown,
    current: ActionRow | null,
    exportedAssets: ExportedAssets,
  ) {
    const input = readProperty(data, "dependencies");
    const list = findDependenciesFault(input) === null ? (input as string[]) : [];
    return this.options.packages.resolve(author, list, current?.assets ?? [], exportedAssets);
  }

  /** Returns the fields with the scripts of the dependencies. @param knownAssets scripts that the action already has */
  private addAssets(
    input: ActionInput,
    knownAssets: readonly StoredAsset[],
    resolved: ResolvedDependencies,
  ): ValidatedAction {
    return {
      input,
      assets: this.options.packages.collectAssets(input.dependencies, knownAssets, resolved),
    };
  }

  /**
   * Checks the code and resolves the dependencies. Call this method before the transaction, because these steps are slow. It throws no
   * validation errors: the later validation throws them.
   * @param current the current draft; null for a new action
   * @param exportedAssets scripts that the imported document lists
   */
  async prepare(
    author: ScriptQuotaRequest,
    data: unknown,
    current: ActionRow | null,
    exportedAssets = NO_EXPORTED_ASSETS,
  ): Promise<ResolvedDependencies> {
    const { codeChecker, sourceBuilds, packages } = this.options;
    try {
      const hasSource = isObject(readProperty(data, "source")) && readProperty(data, "dependencies") !== undefined;
      const sourceDependencies = hasSource
        ? await this.resolveSourceDependencies(author, data, current, exportedAssets)
        : NO_RESOLVED_DEPENDENCIES;
      const builtSource = await sourceBuilds.addBuiltCode(author.appId, data, current, sourceDependencies);
      if (hasSource) {
        const code = readProperty(builtSource.data, "code");
        if (isText(code)) await codeChecker.check(author.appId, code);
        return sourceDependencies;
      }
      const input = await (current
        ? this.parseUpdatedInput(current, builtSource)
        : this.parseCreatedInput(author.appId, builtSource));
      // Without `dependencies` in `data`, the action keeps its scripts, even if a URL now returns another file. Only missing scripts are
      // fetched.
      if (current && readProperty(data, "dependencies") === undefined)
        return { ...(await packages.resolveMissing(author, input.dependencies, current.assets)), firstError: null };
      return await packages.resolve(author, input.dependencies, current?.assets ?? [], exportedAssets);
    } catch (error) {
      if (error instanceof ActionError) return NO_RESOLVED_DEPENDENCIES;
      throw error;
    }
  }

  /**
   * Validates the data of a new action.
   * @param rewrittenIds IDs of actions that the same transaction replaces; the new action may use their URL paths
   * @throws the error statuses of invalid fields (rules/validation-table.ts), DEPENDENCY_UNRESOLVED
   */
  async validateCreate(
    manager: EntityManager,
    appId: number,
    data: unknown,
    resolved: ResolvedDependencies,
    rewrittenIds: readonly number[] = [],
  ): Promise<ValidatedAction> {
    return validateWithFreeNameAndPaths(manager, { appId, exceptId: null, rewrittenIds }, data, async () =>
      requireKnownFields(
        data,
        this.addAssets(
          await this.parseCreatedInput(
            appId,
            await this.options.sourceBuilds.addBuiltCode(appId, data, null, resolved),
          ),
          [],
          resolved,
        ),
      ),
    );
  }

  /**
   * Validates an update of a draft, and returns the resulting action. Fields that are missing in `data` keep their values.
   * @throws the same errors as `validateCreate`
   */
  async validateUpdate(
    manager: EntityManager,
    current: ActionRow,
    data: unknown,
    resolved: ResolvedDependencies,
    rewrittenIds: readonly number[] = [],
  ): Promise<ValidatedAction> {
    const draftScope = { appId: current.appId, exceptId: current.id, rewrittenIds };
    return validateWithFreeNameAndPaths(manager, draftScope, data, async () =>
      requireKnownFields(
        data,
        this.addAssets(
          await this.parseUpdatedInput(
            current,
            await this.options.sourceBuilds.addBuiltCode(current.appId, data, current, resolved),
          ),
          current.assets,
          resolved,
        ),
      ),
    );
  }

  /**
   * Prepares the restore of a saved version before the transaction: checks the code of the version, and resolves the
   * dependencies whose scripts are missing.
   * @param current the draft before the restore
   */
  async prepareRestore(
    author: ScriptQuotaRequest,
    snapshot: StoredDraftSnapshot,
    current: ActionRow,
  ): Promise<ResolvedDependencies> {
    const { codeChecker, packages } = this.options;
    const { code, dependencies, assets } = snapshot;
    if (isText(code)) await codeChecker.check(author.appId, code);
    return {
      ...(await packages.resolveMissing(author, dependencies, [...assets, ...current.assets])),
      firstError: null,
    };
  }

  /**
   * Validates a saved version with the current rules. The restored draft gets the scripts of the version. If the version lacks the script
   * of a dependency, the draft's script for this dependency is used.
   * @throws the same errors as `validateCreate`, except NAME_ALREADY_EXISTS
   */
  async validateRestore(
    manager: EntityManager,
    current: ActionRow,
    snapshot: StoredDraftSnapshot,
    resolved: ResolvedDependencies,
  ): Promise<ValidatedAction> {
    const { appId, id } = current;
    const knownAssets = [...snapshot.assets, ...current.assets];
    // A version without the field `access` (from an older release) gets the draft's current `access`. Otherwise a
    // restore could give access to callers that the author has excluded since then.
    const wholeSnapshot = { ...snapshot, access: snapshot.access ?? pickAuthoredFields(current).access };
    const input = await this.parseCreatedInput(appId, { data: wholeSnapshot, fault: null });
    const routeFault = await findRouteConflictError(
      manager,
      { appId, isDraft: true, ignoredActionIds: [id] },
      input.triggers,
    );
    if (routeFault) throw routeFault;
    return this.addAssets(input, knownAssets, resolved);
  }

  /** Resolves the dependencies that have no script yet, before the transaction that publishes the action. */
  preparePublish(author: ScriptQuotaRequest, { dependencies, assets }: ActionRow): Promise<ResolvedDependencies> {
    return this.options.packages.resolveMissing(author, dependencies, assets);
  }

  /**
   * Returns the fields and scripts with which a draft will be published.
   * @throws DEPENDENCY_UNRESOLVED if the script of a dependency is not available
   */
  validatePublish(master: ActionRow, resolved: ResolvedDependencies): ValidatedAction {
    return this.addAssets(pickAuthoredFields(master), master.assets, resolved);
  }
}
