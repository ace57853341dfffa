/** Props of each group of form fields of an action. */
import type { ApiClient } from "../shared/api.js";
import type { Action } from "../shared/model.js";
import type { ActionDraft } from "./draft.js";
import type { FieldError } from "./field-error.js";

export interface ActionFieldsProps {
  api: ApiClient;
  appId: number;
  draft: ActionDraft;
  /** Dependencies of the saved action, each with the version and the script that the service chose. */
  assets: Action["assets"];
  fault: FieldError | null;
  changeDraft: (change: Partial<ActionDraft>) => void;
}
