/**
 * Form fields for the packages and script URLs that an action's code needs, with the version that each had at the last save. The service
 * checks whether they exist.
 */
import { type KeyboardEvent, useState } from "react";
import packages from "../../../rules/packages.json";
import { Field } from "../shared/field.js";
import { formatBytes } from "../shared/format.js";
import type { FieldsProps } from "./fields-props.js";

/** Packages of the service that have a script. The others are not suggested. */
const OFFERED_PACKAGES = packages.filter((entry) => "path" in entry);

/** Popular npm packages to choose from. Any other name can be typed. */
const POPULAR_PACKAGES =
  "axios bignumber.js crypto-js date-fns dayjs decimal.js diff ejs exceljs fast-xml-parser fuse.js handlebars joi jose js-yaml jspdf " +
  "lodash luxon marked mathjs mustache papaparse pdf-lib qs slugify uuid validator xlsx yaml zod";

/** Returns the text of the line below a dependency, or "" if there is nothing to show. */
function dependencyStateText({
  version,
  licence,
  bytes,
  global,
  usesEval,
  changed,
  unreached,
}: FieldsProps["assets"][number]): string {
  if (unreached)
    return "not kept yet, as its host did not answer: each run loads what its address serves then; the next save or publish tries again";
  const parts = [version, licence, bytes ? formatBytes(bytes) : null, global ? `in code: ${global}` : null];
  const changeNote = changed ? "its address serves something else by now; remove and add it to take that" : null;
  const evalNote = usesEval ? "uses eval: what needs it works on the server alone" : null;
  return [...parts, evalNote, changeNote].filter(Boolean).join(" · ");
}

export function DependencyFields({ draft: { dependencies }, assets, fault, change }: FieldsProps) {
  const [text, setText] = useState("");
  const setDependencies = (all: string[]) => change({ dependencies: all });

  const addDependency = (name: string) => {
    setText("");
    if (name !== "" && !dependencies.includes(name)) setDependencies([...dependencies, name]);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) addDependency(text.trim());
  };
  // Choosing an option causes an input event like typing. The complete name of a package of the service is added without Enter.
  const onText = (value: string) =>
    OFFERED_PACKAGES.some(({ name }) => name === value) ? addDependency(value) : setText(value);

  return (
    <Field name="dependencies" label="Dependencies" fault={fault}>
      {(tied) => (
        <div className="rows">
          {dependencies.map((dependency) => (
            <div key={dependency} className="row dependency">
              <span className="grow">
                <code>{dependency}</code>
                {assets
                  .filter(({ name }) => name === dependency)
                  .map((asset) => (
                    <span key={asset.name} className="hint became">
                      {dependencyStateText(asset)}
                    </span>
                  ))}
              </span>
              <button
                type="button"
                className="quiet small"
                aria-label={`Remove ${dependency}`}
                onClick={() => setDependencies(dependencies.filter((name) => name !== dependency))}
              >
                ✕
              </button>
            </div>
          ))}
          <input
            {...tied}
            list="packages"
            placeholder="svc-csv, date-fns@4, https://…"
            spellCheck={false}
            value={text}
            onChange={(event) => onText(event.target.value)}
            onKeyDown={onKeyDown}
            onBlur={() => addDependency(text.trim())}
          />
          <datalist id="packages">
            {OFFERED_PACKAGES.map(({ name, namespace }) => (
              <option key={name} value={name}>{`Svc.${namespace}`}</option>
            ))}
            {POPULAR_PACKAGES.split(" ").map((name) => (
              <option key={name} value={name}>
                npm
              </option>
            ))}
          </datalist>
        </div>
      )}
    </Field>
  );
}
