/** Banner that shows another person's version of an action beside the version in this page, and lets the person choose one. */
import { useCallback, useState } from "react";
import { shown } from "../shared/format.js";
import { Modal } from "../shared/modal.js";
import { CodeCompare } from "./code-compare.js";
import { type Draft, dataOf, draftOf } from "./draft.js";
import type { Editor } from "./use-editor.js";
import type { Theirs } from "./use-others.js";

/** Compares the fields in which the versions differ, except for the code. */
function FieldsCompare({ theirs, mine }: { theirs: Draft; mine: Draft }) {
  const [before, after] = [dataOf(theirs), dataOf(mine)] as Record<string, unknown>[];
  const fields = Object.keys(after!).filter((field) => shown(before![field]) !== shown(after![field]));
  const listed = fields.filter((field) => field !== "code");
  if (listed.length === 0) return null;
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
          {listed.map((field) => (
            <tr key={field}>
              <th scope="row">{field}</th>
              <td className="removed">{shown(before![field])}</td>
              <td className="added">{shown(after![field])}</td>
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

function Compare({ who, theirs, mine, close, takeTheirs, keepMine }: CompareProps) {
  return (
    <Modal className="wide" aria-labelledby="both" onClose={close}>
      <h2 id="both">Both versions</h2>
      <p className="hint">
        Lines with <code>-</code> are in the version that {who} saved. Lines with <code>+</code> are in yours, which is
        not saved.
      </p>
      <CodeCompare before={theirs.code} after={mine.code} />
      <FieldsCompare theirs={theirs} mine={mine} />
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
    </Modal>
  );
}

function Removed({ who, editor }: { who: string; editor: Editor }) {
  return (
    <p className="notice banner" role="alert">
      <span className="grow">{who} has deleted this action. What you see is not stored any more.</span>
      <button type="button" onClick={editor.detach}>
        Make it a new action
      </button>
    </p>
  );
}

function Changed({ who, theirs, editor }: { who: string; theirs: Draft; editor: Editor }) {
  const [comparing, setComparing] = useState(false);
  const close = useCallback(() => setComparing(false), []);
  const choose = (choice: () => void) => () => {
    close();
    choice();
  };
  const choices = { takeTheirs: choose(editor.takeTheirs), keepMine: choose(editor.keepMine) };
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
      {comparing && <Compare {...{ who, theirs, close }} {...choices} mine={editor.draft!} />}
    </>
  );
}

export function OthersBanner({ editor }: { editor: Editor }) {
  const { theirs, news } = editor.others;
  if (theirs) return <Conflict editor={editor} {...theirs} />;
  return (
    <p className="hint news" role="status">
      {news}
    </p>
  );
}

function Conflict({ editor, action, who }: Theirs & { editor: Editor }) {
  if (!action) return <Removed who={who} editor={editor} />;
  return <Changed key={action.updatedAt} who={who} theirs={draftOf(action)} editor={editor} />;
}
