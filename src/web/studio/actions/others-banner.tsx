/**
 * Banner for an action that another person has saved meanwhile. It shows the other version beside the version in this page, and lets the
 * person choose one.
 */
import { useCallback, useState } from "react";
import { formatJson } from "../shared/format.js";
import { ModalDialog } from "../shared/modal.js";
import { CodeCompare } from "./code-compare.js";
import { actionToDraft, type Draft, dataOf } from "./draft.js";
import type { ActionEditor } from "./use-editor.js";
import type { OtherChange } from "./use-others.js";

/** Shows the form fields that differ between the other person's draft and the draft in this page. The code is compared elsewhere. */
function FieldComparison({ theirs, mine }: { theirs: Draft; mine: Draft }) {
  const [before, after] = [dataOf(theirs), dataOf(mine)] as Record<string, unknown>[];
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

interface CompareProps {
  who: string;
  theirs: Draft;
  mine: Draft;
  close: () => void;
  takeTheirs: () => void;
  keepMine: () => void;
}

function VersionComparison({ who, theirs, mine, close, takeTheirs, keepMine }: CompareProps) {
  return (
    <ModalDialog className="wide" aria-labelledby="both" onClose={close}>
      <h2 id="both">Both versions</h2>
      <p className="hint">
        Lines with <code>-</code> are in the version that {who} saved. Lines with <code>+</code> are in yours, which is
        not saved.
      </p>
      <CodeCompare before={theirs.code} after={mine.code} />
      <FieldComparison theirs={theirs} mine={mine} />
      <div className="row end">
        <button type="button" onClick={close}>
          Decide later
        </button>
        <button type="button" className="danger" onClick={takeTheirs}>
          Take theirs
        </button>
        <button type="button" className="primary" onClick={keepMine}>
          Go on with mine
        </button>
      </div>
    </ModalDialog>
  );
}

function DeletedNotice({ who, editor }: { who: string; editor: ActionEditor }) {
  return (
    <p className="notice banner" role="alert">
      <span className="grow">{who} has deleted this action. What you see is not stored any more.</span>
      <button type="button" onClick={editor.detach}>
        Create it as a new action
      </button>
    </p>
  );
}

function ChangedNotice({ who, theirs, editor }: { who: string; theirs: Draft; editor: ActionEditor }) {
  const [comparing, setComparing] = useState(false);
  const close = useCallback(() => setComparing(false), []);
  const closeAndChoose = (choice: () => void) => () => {
    close();
    choice();
  };
  const choices = { takeTheirs: closeAndChoose(editor.takeTheirs), keepMine: closeAndChoose(editor.keepMine) };
  return (
    <>
      <p className="notice banner" role="alert">
        <span className="grow">{who} has saved this action while you were changing it.</span>
        <button type="button" className="primary" onClick={() => setComparing(true)}>
          See both
        </button>
        <button type="button" onClick={choices.takeTheirs}>
          Take theirs
        </button>
        <button type="button" onClick={choices.keepMine}>
          Go on with mine
        </button>
      </p>
      {comparing && <VersionComparison {...{ who, theirs, close }} {...choices} mine={editor.draft!} />}
    </>
  );
}

export function OthersBanner({ editor }: { editor: ActionEditor }) {
  const { theirs, news } = editor.others;
  if (theirs) return <ConflictNotice editor={editor} {...theirs} />;
  return (
    <p className="hint news" role="status">
      {news}
    </p>
  );
}

function ConflictNotice({ editor, action, who }: OtherChange & { editor: ActionEditor }) {
  if (!action) return <DeletedNotice who={who} editor={editor} />;
  return <ChangedNotice key={action.updatedAt} who={who} theirs={actionToDraft(action)} editor={editor} />;
}
