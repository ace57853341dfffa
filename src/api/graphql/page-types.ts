/** Builds the GraphQL type of one page of a list: the field `items`, and the fields of the interface `Page`. */
import { GraphQLSafeInt } from "graphql-scalars";
import { Field, FieldResolver, InterfaceType, Resolver, Root } from "type-graphql";
import { createRowCursor } from "../../rules/page.js";

type ItemTypes = () => [unknown];

/** Pagination data of a list, as the operations return it. Each list has some of these fields. */
interface PaginationData {
  total?: number;
  hasMore?: boolean;
  totalIsExact?: boolean;
  about?: boolean;
  nextCursor?: string | null;
  nextBefore?: number | null;
  offset?: number;
}

interface ListedPage {
  pagination?: PaginationData;
  /** Cursor of a query of entries. `next` is null on the last page. */
  cursor?: { isLastPage: boolean; next: string | null };
  entries?: unknown[];
  documents?: unknown[] | null;
  count?: number;
  countIsExact?: boolean;
  nextCursor?: string;
}

@InterfaceType("Page", {
  description:
    "Page of a list; its type also has `items`. Read the next page with `nextCursor` as `cursor` where the field takes one, otherwise with a larger `offset`.",
})
export abstract class ListPageType {}

/** Declares the field `items` with the items of a page, and the same items under the list's earlier, deprecated field name. */
export function PageItemsField(types: ItemTypes, description: string): PropertyDecorator {
  const returnTypeFunction = types as () => [() => object];
  return (prototype, name) => {
    Field(returnTypeFunction, { name: "items", description })(prototype, name);
    Field(returnTypeFunction, { description, deprecationReason: "Use `items`." })(prototype, name);
  };
}

export const DEPRECATED_IN_FAVOR_OF_PAGE = { deprecationReason: "Use the fields of `Page`." };

function findNextCursor({ pagination, cursor, nextCursor }: ListedPage): string | null {
  const { nextBefore } = pagination ?? {};
  return cursor?.next ?? nextCursor ?? pagination?.nextCursor ?? (nextBefore ? createRowCursor(nextBefore) : null);
}

function hasMorePages(list: ListedPage): boolean {
  const { pagination, cursor, entries = [], documents } = list;
  if (cursor) return !cursor.isLastPage;
  if (pagination?.hasMore !== undefined) return pagination.hasMore;
  if (pagination?.total !== undefined) return (pagination.offset ?? 0) + entries.length < pagination.total;
  return list.count === undefined ? (documents ?? entries).length > 0 : list.nextCursor !== undefined;
}

@Resolver(() => ListPageType)
export class ListPageResolver {
  @FieldResolver(() => GraphQLSafeInt, {
    nullable: true,
    description: "Number of matching items on all pages; null if they are not counted.",
  })
  total(@Root() { pagination, count }: ListedPage): number | null {
    return count ?? pagination?.total ?? null;
  }

  @FieldResolver(() => Boolean, {
    description: "False if `total` is null, an estimate, or the bound up to which items are counted.",
  })
  totalIsExact(@Root() { pagination, count, countIsExact = true }: ListedPage): boolean {
    if (count !== undefined) return countIsExact;
    return pagination?.total !== undefined && pagination.totalIsExact !== false && !pagination.about;
  }

  @FieldResolver(() => Boolean, {
    description:
      "True if items follow this page. A query of entries that does not count them also returns true if items could follow.",
  })
  hasMore(@Root() list: ListedPage): boolean {
    return hasMorePages(list);
  }

  @FieldResolver(() => String, {
    nullable: true,
    description: "Value of `cursor` for the next page; null on the last page and where the field takes no cursor.",
  })
  nextCursor(@Root() list: ListedPage): string | null {
    return findNextCursor(list);
  }
}
