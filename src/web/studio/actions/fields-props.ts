/** Props of each group of form fields of an action. */
import type { Api } from "../shared/api.js";
import type { Action } from "../shared/model.js";
import type { Draft } from "./draft.js";
import type { FieldError } from "./field-fault.js";

export interface FieldsProps {
  api: Api;
  appId: number;
  draft: Draft;
  /** Dependencies of the saved action, each with the version and the script that the service chose. */
  assets: Action["assets"];
  fault: FieldError | null;
  changeDraft: (change: Partial<Draft>) => void;
}
