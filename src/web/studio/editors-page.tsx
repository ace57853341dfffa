/** Who edits the app: adding by number, making a person as an administrator, taking rights away. */
import { type FormEvent, useCallback, useState } from "react";
import { AddEditor, CreatePerson, ListEditors, RemoveEditor } from "./documents.js";
import type { Person } from "./model.js";
import type { PageProps } from "./page-props.js";
import { fullName } from "./people.js";
import { idOf } from "./place.js";
import { SecretOnce } from "./secret-once.js";
import { type Loaded, useLoaded } from "./use-loaded.js";

type EditorsProps = Pick<PageProps, "api" | "appId"> & { list: Loaded<Person[]> };

function AddById({ api, appId, list }: EditorsProps) {
  const [id, setId] = useState("");
  const userId = idOf(id.trim());
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (userId !== null && (await list.change(() => api.ask(AddEditor, { appId, userId })))) setId("");
  };
  return (
    <form className="row" onSubmit={(event) => void submit(event)}>
      <input
        aria-label="Number of the person"
        inputMode="numeric"
        placeholder="number of a person of this organization"
        value={id}
        onChange={(event) => setId(event.target.value)}
      />
      <button type="submit" className="primary" disabled={userId === null || list.busy}>
        Add as editor
      </button>
    </form>
  );
}

const NOBODY = { firstName: "", lastName: "", email: "" };
const FIELDS: [keyof typeof NOBODY, string][] = [
  ["firstName", "First name"],
  ["lastName", "Last name"],
  ["email", "E-mail address"],
];

/** A new person is of the first organization; one of another is made over the API. */
function NewPerson({ api, appId, list, onToken }: EditorsProps & { onToken: (who: string, token: string) => void }) {
  const [person, setPerson] = useState(NOBODY);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const made = await list.change(async () => {
      const { created } = await api.ask(CreatePerson, { data: person });
      // The person is there whether or not the next step is refused: the token must not be lost.
      onToken(fullName(created.user), created.token);
      return api.ask(AddEditor, { appId, userId: created.user.id });
    });
    if (made) setPerson(NOBODY);
  };
  return (
    <form className="row" onSubmit={(event) => void submit(event)}>
      {FIELDS.map(([name, label]) => (
        <input
          key={name}
          aria-label={label}
          placeholder={label}
          required
          autoComplete="off"
          type={name === "email" ? "email" : "text"}
          value={person[name]}
          onChange={(event) => setPerson({ ...person, [name]: event.target.value })}
        />
      ))}
      <button type="submit" disabled={list.busy}>
        Make a person and add
      </button>
    </form>
  );
}

export function EditorsPage({ api, appId, ask, isAdmin }: PageProps) {
  const read = useCallback(async () => (await api.ask(ListEditors, { appId })).editors, [api, appId]);
  const list = useLoaded(api, read);
  const [session, setSession] = useState<{ label: string; secret: string } | null>(null);
  const remove = async (person: Person) => {
    const text = "From this moment on their session reaches this app no more. What they wrote stays.";
    if (!(await ask({ title: `Remove ${fullName(person)}?`, text, yes: "Remove", danger: true }))) return;
    await list.change(() => api.ask(RemoveEditor, { appId, userId: person.id }));
  };
  const onToken = (who: string, secret: string) => setSession({ label: `The session of ${who}`, secret });
  return (
    <>
      <AddById {...{ api, appId, list }} />
      {isAdmin && <NewPerson {...{ api, appId, list, onToken }} />}
      <p className="fault" role="alert">
        {list.fault}
      </p>
      {session && <SecretOnce {...session} close={() => setSession(null)} />}
      <ul className="records">
        {list.value?.map((person) => (
          <li key={person.id}>
            <span className="chip">{person.id}</span>
            <b>{fullName(person)}</b>
            <span className="hint grow">{person.email}</span>
            <button
              type="button"
              className="quiet danger-text"
              aria-label={`Remove ${fullName(person)}`}
              onClick={() => void remove(person)}
            >
              Remove
            </button>
          </li>
        ))}
      </ul>
      {list.value?.length === 0 && <p className="hint">Nobody but administrators.</p>}
    </>
  );
}
