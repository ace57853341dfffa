/** Reads the parts of a URL of Studio, which are texts, as values. A wrong value is null, and counts as missing. */

/** Returns a positive whole number, or null. */
export const idOf = (text: string | null | undefined) => (text && /^[1-9]\d{0,15}$/.test(text) ? Number(text) : null);

export const textOf = (text: string) => text;

export const oneOf =
  <const One extends string>(all: readonly One[]) =>
  (text: string) =>
    all.find((one) => one === text) ?? null;

type Parsers = Readonly<Record<string, (text: string) => unknown>>;

/** Search parameters of a route, of which each can be missing. */
export type SearchOf<All extends Parsers> = { [Key in keyof All]?: NonNullable<ReturnType<All[Key]>> };

/** Returns a function that reads the parameters which `parsers` names. It leaves out others, and empty ones. */
export const searchOf =
  <All extends Parsers>(parsers: All) =>
  (search: Record<string, unknown>): SearchOf<All> => {
    const known = Object.entries(search).filter(([key, value]) => Object.hasOwn(parsers, key) && value);
    const values = known.map(([key, value]) => [key, parsers[key]!(String(value))] as const);
    return Object.fromEntries(values.filter(([, value]) => value !== null)) as SearchOf<All>;
  };
