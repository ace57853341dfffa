/** Creates the modules for all operations on actions except runs. */
import type { Logger } from "pino";
import type { Db } from "../../data/database.js";
import { createCompileChecker } from "../../engine/isolate-check.js";
import type { AddAssetUrls } from "../../rules/packages.js";
import type { TriggerEndpoints } from "../http/endpoints.js";
import type { DependencyResolver } from "../packages/packages.js";
import type { TriggerIndex } from "../triggers/trigger-index.js";
import { createActionRowConverter, createLockDraft } from "./action-rows.js";
import { ActionValidation } from "./action-validation.js";
import { Actions } from "./actions.js";
import { CodeChecker } from "./code-checker.js";
import { ActionComparer } from "./comparison.js";
import { DraftWriter } from "./draft-writer.js";
import { ActionImporter } from "./import-steps.js";
import { PayloadPresets } from "./presets.js";
import { createCodeProblemFinder } from "./problems.js";
import { ActionPublisher } from "./publishing.js";
import { DraftRestorer } from "./restoring.js";
import { createHttpTriggerSecretRotator } from "./secret-rotation.js";
import { SourceBuilds } from "./source-builds.js";
import { ActionTransfer } from "./transfer.js";
import { ActionVersions } from "./versions.js";

export interface AuthoringOptions {
  db: Db;
  packages: DependencyResolver;
  addAssetUrls: AddAssetUrls;
  triggerIndex: TriggerIndex;
  /** Time limit that the operator has set for each run on the server, in milliseconds. */
  serverTimeoutMs: number;
  /** True if the `integrationOrigins` of an action may contain http and loopback origins. */
  allowPrivateNetwork: boolean;
  endpoints: TriggerEndpoints;
  log: Logger;
}

export function createAuthoringModules(options: AuthoringOptions) {
  const { db, packages, addAssetUrls, triggerIndex, serverTimeoutMs, allowPrivateNetwork, endpoints, log } = options;
  const convertRow = createActionRowConverter(addAssetUrls);
  const lockDraft = createLockDraft(convertRow);
  const compileChecker = createCompileChecker();
  const codeChecker = new CodeChecker(compileChecker.check);
  const sourceBuilds = new SourceBuilds({ packages });
  const actionValidation = new ActionValidation({
    codeChecker,
    sourceBuilds,
    packages,
    serverTimeoutMs,
    allowPrivateNetwork,
  });
  const draftWriter = new DraftWriter({ log, endpoints, quota: packages.quota });
  const actionImporter = new ActionImporter({ db, validation: actionValidation, draftWriter, packages });
  return {
    actions: new Actions({ db, validation: actionValidation, draftWriter, convertRow, lockDraft }),
    publishing: new ActionPublisher({
      db,
      validation: actionValidation,
      draftWriter,
      log,
      convertRow,
      lockDraft,
      triggerIndex,
    }),
    versions: new ActionVersions({ db, addAssetUrls }),
    rotateSecret: createHttpTriggerSecretRotator({ db, endpoints, lockDraft }),
    restorer: new DraftRestorer({ db, validation: actionValidation, draftWriter, log, convertRow, lockDraft }),
    comparer: new ActionComparer({ db }),
    actionImporter,
    transfer: new ActionTransfer({ db, actionImporter }),
    presets: new PayloadPresets({ db }),
    problems: createCodeProblemFinder({ codeChecker }),
    /** Stops the compiler of the code check. Waits for compilations that are in progress. */
    closeCodeCheck: compileChecker.close,
  };
}
