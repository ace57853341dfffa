/** Creates the modules for all operations on actions except runs. */
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import { createCompileChecker } from "../../engine/isolate-check.js";
import type { AddAssetUrls } from "../../rules/packages.js";
import type { TriggerEndpoints } from "../http/endpoints.js";
import type { DependencyResolver } from "../packages/packages.js";
import type { TriggerIndex } from "../triggers/trigger-index.js";
import { createActionRowConverter, createLockDraft } from "./action-rows.js";
import { createActionValidation } from "./action-validation.js";
import { createActions } from "./actions.js";
import { createCodeChecker } from "./code-checker.js";
import { createActionComparisons } from "./comparison.js";
import { createDraftWriter } from "./draft-writer.js";
import { createImportSteps } from "./import-steps.js";
import { createPayloadPresets } from "./presets.js";
import { createCodeProblems } from "./problems.js";
import { createActionPublisher } from "./publishing.js";
import { createDraftRestorer } from "./restoring.js";
import { createSecretRotation } from "./secret-rotation.js";
import { createSourceBuilds } from "./source-builds.js";
import { createActionTransfer } from "./transfer.js";
import { createActionVersions } from "./versions.js";

export interface AuthoringOptions {
  db: DataSource;
  packages: DependencyResolver;
  addAssetUrls: AddAssetUrls;
  triggerIndex: TriggerIndex;
  /** Time limit that the operator has set for each run, in milliseconds. */
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
  const isolateCheck = createCompileChecker();
  const codeChecker = createCodeChecker(isolateCheck.check);
  const sources = createSourceBuilds({ packages });
  const actionValidation = createActionValidation({
    codeChecker,
    sources,
    packages,
    serverTimeoutMs,
    allowPrivateNetwork,
  });
  const draftWriter = createDraftWriter({ log, endpoints });
  const importSteps = createImportSteps({ db, validation: actionValidation, draftWriter, packages });
  return {
    actions: createActions({ db, validation: actionValidation, draftWriter, convertRow, lockDraft }),
    publishing: createActionPublisher({
      db,
      validation: actionValidation,
      draftWriter,
      log,
      convertRow,
      lockDraft,
      triggerIndex,
    }),
    versions: createActionVersions({ db, addressed: addAssetUrls }),
    rotateSecret: createSecretRotation({ db, endpoints, lockDraft }),
    restoring: createDraftRestorer({ db, validation: actionValidation, draftWriter, log, convertRow, lockDraft }),
    comparison: createActionComparisons({ db }),
    importSteps,
    transfer: createActionTransfer({ db, steps: importSteps }),
    presets: createPayloadPresets({ db }),
    problems: createCodeProblems({ codeChecker }),
    /** Stops the compiler of the code check. Waits for compilations that are in progress. */
    closeCodeCheck: isolateCheck.close,
  };
}
