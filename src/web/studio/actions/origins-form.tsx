/** Form for the origins of the app's pages on other sites, one origin per line. */
import { type FormEvent, useEffect, useState } from "react";
import { ReadOrigins, SetOrigins } from "../documents.js";
import { type Api, refusalText } from "../shared/api.js";

export function OriginsForm({ api, appId }: { api: Api; appId: number }) {
  const [saved, setSaved] = useState<string | null>(null);
  const [text, setText] = useState("");
  const [fault, setFault] = useState<string | null>(null);

  useEffect(() => {
    let isOver = false;
    const showOrigins = (origins: readonly string[]) => {
      if (isOver) return;
      setSaved(origins.join("\n"));
      setText(origins.join("\n"));
    };
    api.request(ReadOrigins, { appId }).then(
      ({ origins }) => showOrigins(origins),
      async (error: unknown) => isOver || setFault(await refusalText(error, async () => undefined)),
    );
    return () => {
      isOver = true;
    };
  }, [api, appId]);

  const save = async (event: FormEvent) => {
    event.preventDefault();
    const typedOrigins = text.split("\n").map((line) => line.trim());
    try {
      const { origins } = await api.request(SetOrigins, { appId, origins: typedOrigins.filter((line) => line !== "") });
      setSaved(origins.join("\n"));
      setText(origins.join("\n"));
      setFault(null);
    } catch (error) {
      setFault(await refusalText(error, async () => undefined));
    }
  };

  return (
    <form className="origins" onSubmit={(event) => void save(event)}>
      <h3>Pages on other sites</h3>
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
      <p className="fault" role="alert">
        {fault}
      </p>
      <button type="submit" disabled={saved === null || text === saved}>
        Save the origins
      </button>
    </form>
  );
}
