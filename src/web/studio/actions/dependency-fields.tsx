/**
 * Form fields for the packages and script URLs on which an action's code depends. Below each package is the version that the service chose
 * at the last save. Only the service checks that a package exists.
 */
import X from "icon:x";
import { type KeyboardEvent, useState } from "react";
import packages from "../../../rules/packages.json";
import { FormField } from "../shared/field.js";
import { formatBytes } from "../shared/format.js";
import type { ActionFieldsProps } from "./fields-props.js";

/** Popular npm packages that the field suggests. The person can type any other name. */
const POPULAR_PACKAGES =
  "axios bignumber.js crypto-js date-fns dayjs decimal.js diff ejs exceljs fast-xml-parser fuse.js handlebars joi jose js-yaml jspdf " +
  "lodash luxon marked mathjs mustache papaparse pdf-lib qs slugify uuid validator xlsx yaml zod";

/** Returns the line below a dependency: version, license, size, global name and warnings. Returns "" if there is nothing to show. */
function getDependencyStateText({
  version,
  licence,
  bytes,
  global,
  usesEval,
  changed,
  unreached,
}: ActionFieldsProps["assets"][number]): string {
  if (unreached)
    return "not stored yet, because its host did not answer: each run loads the script from its URL; the next save or publish tries again";
  const parts = [version, licence, bytes ? formatBytes(bytes) : null, global ? `in code: ${global}` : null];
  const changeNote = changed
    ? "its URL returns another file now; remove the dependency and add it again to use that file"
    : null;
  const evalNote = usesEval ? "uses eval: the parts that need eval work only on the server" : null;
  return [...parts, evalNote, changeNote].filter(Boolean).join(" · ");
}

export function DependencyFields({ draft: { dependencies }, assets, fault, changeDraft }: ActionFieldsProps) {
  const [text, setText] = useState("");
  const setDependencies = (names: string[]) => changeDraft({ dependencies: names });

  const addDependency = (name: string) => {
    setText("");
    if (name !== "" && !dependencies.includes(name)) setDependencies([...dependencies, name]);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) addDependency(text.trim());
  };
  // If the text is the name of one of the service's packages, adds this dependency at once, without Enter. So a click on
  // a suggestion adds it. Browsers send the same input event for a chosen suggestion as for typed text.
  const onTextChange = (value: string) =>
    packages.some(({ name }) => name === value) ? addDependency(value) : setText(value);

  return (
    <FormField name="dependencies" label="Dependencies" fault={fault}>
      {(fieldAttributes) => (
        <div className="rows">
          {dependencies.map((dependency) => (
            <div key={dependency} className="row dependency">
              <span className="grow">
                <code>{dependency}</code>
                {assets
                  .filter(({ name }) => name === dependency)
                  .map((asset) => (
                    <span key={asset.name} className="hint became">
                      {getDependencyStateText(asset)}
                    </span>
                  ))}
              </span>
              <button
                type="button"
                className="quiet icon"
                aria-label={`Remove ${dependency}`}
                onClick={() => setDependencies(dependencies.filter((name) => name !== dependency))}
              >
                <X size={14} aria-hidden />
              </button>
            </div>
          ))}
          <input
            {...fieldAttributes}
            list="packages"
            placeholder="svc-csv, date-fns@4, https://…"
            spellCheck={false}
            value={text}
            onChange={(event) => onTextChange(event.target.value)}
            onKeyDown={onKeyDown}
            onBlur={() => addDependency(text.trim())}
          />
          <datalist id="packages">
            {packages.map(({ name, namespace }) => (
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
    </FormField>
  );
}
