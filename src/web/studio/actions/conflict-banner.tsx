/**
 * Banner about a conflict with another person, who has saved or deleted the open action. After a save, the person
 * compares the saved version with the version in this page, and chooses which to keep.
 */
import { useCallback, useState } from "react";
import { formatJson } from "../shared/format.js";
import { ModalDialog } from "../shared/modal.js";
import { CodeComparison } from "./code-compare.js";
import { type ActionDraft, actionToDraft, draftToActionInput } from "./draft.js";
import type { ActionEditor } from "./use-editor.js";
import type { ConflictingChange } from "./use-other-people-changes.js";

/** Shows the form fields, except the code, that differ between the other person's draft and the draft in this page. */
function DraftFieldComparison({ theirs, mine }: { theirs: ActionDraft; mine: ActionDraft }) {
  const [before, after] = [draftToActionInput(theirs), draftToActionInput(mine)] as Record<string, unknown>[];
  const fields = Object.keys(after!).filter((field) => formatJson(before![field]) !== formatJson(after![field]));
  const changedFields = fields.filter((field) => field !== "code");
  if (changedFields.length === 0) return null;
  return (
    <div className="diff">
      <table>
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Theirs</th>
            <th scope="col">Yours</th>
          </tr>
        </thead>
        <tbody>
          {changedFields.map((field) => (
            <tr key={field}>
              <th scope="row">{field}</th>
              <td className="removed">{formatJson(before![field])}</td>
              <td className="added">{formatJson(after![field])}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface VersionComparisonProps {
  personName: string;
  otherDraft: ActionDraft;
  ownDraft: ActionDraft;
  closeComparison: () => void;
  replaceByOtherVersion: () => void;
  keepOwnVersion: () => void;
}

function VersionComparison({
  personName,
  otherDraft,
  ownDraft,
  closeComparison,
  replaceByOtherVersion,
  keepOwnVersion,
}: VersionComparisonProps) {
  return (
    <ModalDialog className="wide" aria-labelledby="both" onClose={closeComparison}>
      <h2 id="both">Both versions</h2>
      <p className="hint">
        Lines with <code>-</code> are in the version that {personName} saved. Lines with <code>+</code> are in yours,
        which is not saved.
      </p>
      <CodeComparison before={otherDraft.code} after={ownDraft.code} />
      <DraftFieldComparison theirs={otherDraft} mine={ownDraft} />
      <div className="row end">
        <button type="button" onClick={closeComparison}>
          Decide later
        </button>
        <button type="button" className="danger" onClick={replaceByOtherVersion}>
          Take theirs
        </button>
        <button type="button" className="primary" onClick={keepOwnVersion}>
          Go on with mine
        </button>
      </div>
    </ModalDialog>
  );
}

function DeletedNotice({ personName, editor }: { personName: string; editor: ActionEditor }) {
  return (
    <p className="notice banner" role="alert">
      <span className="grow">{personName} has deleted this action. What you see is not stored any more.</span>
      <button type="button" onClick={editor.detachFromAction}>
        Create it as a new action
      </button>
    </p>
  );
}

function ChangedNotice({
  personName,
  otherDraft,
  editor,
}: {
  personName: string;
  otherDraft: ActionDraft;
  editor: ActionEditor;
}) {
  const [isComparing, setComparing] = useState(false);
  const closeComparison = useCallback(() => setComparing(false), []);
  const closeAndChoose = (choice: () => void) => () => {
    closeComparison();
    choice();
  };
  const choices = {
    replaceByOtherVersion: closeAndChoose(editor.replaceByOtherVersion),
    keepOwnVersion: closeAndChoose(editor.keepOwnVersion),
  };
  return (
    <>
      <p className="notice banner" role="alert">
        <span className="grow">{personName} has saved this action while you were changing it.</span>
        <button type="button" className="primary" onClick={() => setComparing(true)}>
          See both
        </button>
        <button type="button" onClick={choices.replaceByOtherVersion}>
          Take theirs
        </button>
        <button type="button" onClick={choices.keepOwnVersion}>
          Go on with mine
        </button>
      </p>
      {isComparing && (
        <VersionComparison {...{ personName, otherDraft, closeComparison }} {...choices} ownDraft={editor.draft!} />
      )}
    </>
  );
}

export function ConflictBanner({ editor }: { editor: ActionEditor }) {
  const { conflict, changeNotice } = editor.otherPeopleChanges;
  if (conflict) return <ConflictNotice editor={editor} {...conflict} />;
  return (
    <p className="hint news" role="status">
      {changeNotice}
    </p>
  );
}

function ConflictNotice({ editor, action, personName }: ConflictingChange & { editor: ActionEditor }) {
  if (!action) return <DeletedNotice personName={personName} editor={editor} />;
  return (
    <ChangedNotice key={action.updatedAt} personName={personName} otherDraft={actionToDraft(action)} editor={editor} />
  );
}
