/** Form for the origins of other websites whose pages may use the app, with one origin per line. */
import type { FormEvent } from "react";
import { ReadExternalPageOrigins, type ReadExternalPageOriginsQuery, SetExternalPageOrigins } from "../documents.js";
import type { ApiClient } from "../shared/api.js";
import { ChangedElsewhereNotice } from "../shared/changed-elsewhere.js";
import { useFieldDraft } from "../shared/use-field-draft.js";
import { createQueryOptions, type Resource, useResource } from "../shared/use-resource.js";

interface OriginsProps {
  api: ApiClient;
  appId: number;
}

interface OriginsFieldsProps
  extends OriginsProps,
    Pick<Resource<ReadExternalPageOriginsQuery>, "isBusy" | "applyChange"> {
  storedOrigins: readonly string[];
}

function OriginsFields({ api, appId, storedOrigins, isBusy, applyChange }: OriginsFieldsProps) {
  const field = useFieldDraft(storedOrigins.join("\n"));
  const { draft: text, setDraft: setText } = field;
  const saveOrigins = async (event: FormEvent) => {
    event.preventDefault();
    const typedOrigins = text.split("\n").map((line) => line.trim());
    const origins = typedOrigins.filter((line) => line !== "");
    if ((await applyChange(() => api.request(SetExternalPageOrigins, { appId, origins }))) !== null)
      field.markSaved(text);
  };
  return (
    <form className="origins" onSubmit={(event) => void saveOrigins(event)}>
      <textarea
        aria-label="Origins, one a line"
        className="mono"
        rows={3}
        spellCheck={false}
        placeholder="https://shop.example"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <p className="hint">Pages of these origins can call Svc.init, which gives each visitor a session.</p>
      <ChangedElsewhereNotice label="The list of origins" field={field} />
      <button type="submit" disabled={isBusy || !field.isDirty || field.isChangedElsewhere}>
        Save the origins
      </button>
    </form>
  );
}

export function OriginsForm({ api, appId }: OriginsProps) {
  const { value, fault, isBusy, applyChange } = useResource(createQueryOptions(ReadExternalPageOrigins, { appId }));
  return (
    <section className="origins" aria-labelledby="origins">
      <h3 id="origins">Pages on other sites</h3>
      {value && <OriginsFields {...{ api, appId, isBusy, applyChange }} storedOrigins={value.origins} />}
      <p className="fault" role="alert">
        {fault}
      </p>
    </section>
  );
}
