/** Arguments that refer to an action or a data source: an ID or a name, and `by`, which distinguishes them. */
import { Arg, createParameterDecorator, ID, registerEnumType } from "type-graphql";
import { type EntityReference, parseReference, type ReferenceKind } from "../../rules/reference.js";

export enum ReferenceKindType {
  id = "id",
  name = "name",
}
registerEnumType(ReferenceKindType, {
  name: "ReferenceKind",
  description: "Meaning of a reference to an action or a data source.",
  valuesConfig: { id: { description: "The reference is an ID." }, name: { description: "The reference is a name." } },
});

const description = "ID or name. Digits only are an ID unless `by` is `name`.";

/** Declares an argument of that name with a reference. A field with such an argument also has `By`. */
export const Ref = (name: "dataSourceId" | "id" | "nameOrId") =>
  createParameterDecorator(
    ({ args }): EntityReference => parseReference(args[name] as string, args["by"] as ReferenceKind),
    {
      arg: { name, typeFunc: () => ID, options: { description } },
    },
  );

/** Declares the argument `by`, which `Ref` reads. */
export const ByReference = () =>
  Arg("by", () => ReferenceKindType, {
    nullable: true,
    description: "Meaning of the reference; by default digits only are an ID and other text is a name.",
  });
