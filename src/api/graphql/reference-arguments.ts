/**
 * Arguments that refer to an action or a data source by ID or name. The argument `by` says if the reference is an ID or
 * a name.
 */
import { Arg, createParameterDecorator, ID, registerEnumType } from "type-graphql";
import { type IdOrName, parseReference, type ReferenceKind } from "../../rules/reference.js";

export enum ReferenceKindType {
  id = "id",
  name = "name",
}
registerEnumType(ReferenceKindType, {
  name: "ReferenceKind",
  description: "Meaning of a reference to an action or a data source.",
  valuesConfig: { id: { description: "The reference is an ID." }, name: { description: "The reference is a name." } },
});

const REFERENCE_DESCRIPTION = "ID or name. Digits only are an ID unless `by` is `name`.";

/** Declares an argument `name` that contains an ID or a name. A field with this argument must also declare `by` (ReferenceKindArgument). */
export const ReferenceArgument = (name: "dataSourceId" | "id" | "nameOrId") =>
  createParameterDecorator(({ args }): IdOrName => parseReference(args[name] as string, args["by"] as ReferenceKind), {
    arg: { name, typeFunc: () => ID, options: { description: REFERENCE_DESCRIPTION } },
  });

/** Declares the argument `by`, which says if the argument of `ReferenceArgument` is an ID or a name. */
export const ReferenceKindArgument = () =>
  Arg("by", () => ReferenceKindType, {
    nullable: true,
    description: "Meaning of the reference: ID or name. By default, digits are an ID, and any other text is a name.",
  });
