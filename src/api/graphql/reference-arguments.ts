/** Arguments by which a field refers to an action or a data source: an id or a name, and `by`, which says which of the two it is. */
import { Arg, createParameterDecorator, ID, registerEnumType } from "type-graphql";
import { type Reference, type ReferenceKind, referenceOf } from "../../rules/reference.js";

export enum ReferenceKindType {
  id = "id",
  name = "name",
}
registerEnumType(ReferenceKindType, {
  name: "ReferenceKind",
  description: "Says whether a text is an id or a name.",
});

const description = "An id or a name: digits alone are an id, unless `by` says otherwise.";

/** The reference in the argument of that name. A field that has one also has `By`. */
export const Ref = (name: "dataSourceId" | "id" | "nameOrId") =>
  createParameterDecorator(({ args }): Reference => referenceOf(args[name] as string, args["by"] as ReferenceKind), {
    arg: { name, typeFunc: () => ID, options: { description } },
  });

/** Declares the argument; `Ref` reads it. */
export const By = () => Arg("by", () => ReferenceKindType, { nullable: true });
