/** Lists: one page when awaited, everything when iterated. */

/** One page of a list. */
export interface Page<T> {
  /** The items of this page. */
  items: T[];
  /** Fetches the next page; null ends. */
  next_cursor: string | null;
}

/**
 * `await state.list("notes")` is one page; `for await (const entry of state.list("notes"))` reads all pages.
 * No request is sent before.
 */
export class Paged<T> implements PromiseLike<Page<T>>, AsyncIterable<T> {
  constructor(private readonly fetchPage: (cursor?: string) => Promise<Page<T>>) {}

  /** One page: `await` calls this. */
  then<A = Page<T>, B = never>(
    done?: ((page: Page<T>) => A | PromiseLike<A>) | null,
    failed?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.fetchPage().then(done, failed);
  }

  /** Like `Promise.prototype.catch`, for one page. */
  catch<B = never>(failed?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<Page<T> | B> {
    return this.then(undefined, failed);
  }

  /** Like `Promise.prototype.finally`, for one page. */
  finally(ended?: (() => void) | null): Promise<Page<T>> {
    return this.fetchPage().finally(ended);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    let page = await this.fetchPage();
    yield* page.items;
    while (page.next_cursor !== null) {
      page = await this.fetchPage(page.next_cursor);
      yield* page.items;
    }
  }
}
