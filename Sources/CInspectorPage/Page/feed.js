// The requests that the list shows: the newest ones first, older ones when the user scrolls to them, and every change
// as it happens.
import { toast } from "./dom.js";
import { follow, get, remove } from "./api.js";
import { rowOf } from "./record.js";

/** The most requests that one filter names. */
const mostRemoved = 100;

/** The most rows of the list. */
export const most = 100000;

/** Events that say that the list does not show everything. */
const notices = {
  lost: ({ lost }) =>
    `${lost.toLocaleString()} requests are not kept: pinned requests fill the memory. ` +
    "Unpin some, or raise admin.capture.memory.",
  dropped: ({ dropped }) => `${dropped.toLocaleString()} changes came too fast to be shown; the list is sampled`,
};

/** Filters that must all match. */
const joined = (filters) => {
  const parts = filters.filter(Boolean);
  return parts.length === 1 ? parts[0] : parts.map((part) => `(${part})`).join(" & ");
};

export class Feed {
  /**
   * Fills `list`. The functions of `view`: `filter()` gives the text of the filter, `always()` one that applies
   * beside it or "". The others are called: `mistake(error)` with an error of the filter or null, `first()` after the
   * first page, `arrived(rows)` for an event, `counted()` when the counts have changed, `settled()` when the list may
   * be empty or no longer empty, `live(isOpen)` when the stream opens or breaks, `withoutCaptures()` when there are
   * only records.
   */
  constructor(list, view) {
    this.list = list;
    this.view = view;
    this.isPaused = false;
    this.waiting = 0; // requests that arrived since the pause
    this.next = 0; // where the next page of older requests begins; 0 after the last one
    this.kept = 0; // the requests that the gateway has in memory
    this.hidden = null; // the last request that is cleared, but can come back: { through, filter }
    this.isLoading = false;
    this.hasOnlyRecords = false;
    this.turn = 0; // answers to questions of an earlier turn are too late
    this.stream = new AbortController();
  }

  leave() {
    this.stream.abort();
    this.turn += 1;
  }

  path(name, more) {
    const filter = this.shownFilter();
    return "/v1/captures" + name + "?" + new URLSearchParams({ ...(filter ? { filter } : {}), ...more });
  }

  /** The filter of the view without what is cleared. */
  shownFilter() {
    const { hidden } = this, parts = [this.view.filter(), this.view.always()].filter(Boolean);
    if (hidden) parts.push("!(" + joined([hidden.filter, `~id <=${hidden.through}`, "!~marked"]) + ")");
    return joined(parts);
  }

  /** Reads everything again. */
  async load() {
    const own = ++this.turn;
    this.stream.abort();
    this.stream = new AbortController();
    this.waiting = 0;
    // The rows stay until the answer is there.
    this.isStale = true;
    if (this.hasOnlyRecords) {
      this.startList();
      return this.loadRecords(own);
    }
    // The stream first: what changes while the list is read is in one of them, or in both.
    follow(this.path("/events"), this.stream.signal, (type, data) => this.take(type, data), (isOpen) => {
      this.view.live(isOpen);
      if (isOpen && own === this.turn) this.loadNewest(own);
    });
    await this.loadNewest(own);
  }

  /** Empties the list for the answer of a new turn. */
  startList() {
    if (!this.isStale) return;
    this.isStale = false;
    this.list.clear();
    this.next = 0;
  }

  async loadNewest(own) {
    try {
      const page = await get(this.path("", { limit: 200 }), { signal: this.stream.signal });
      if (own !== this.turn) return;
      this.view.mistake(null);
      this.startList();
      this.kept = page.kept ?? 0;
      const isFirst = !this.list.rows.length;
      this.list.put(page.captures.reverse(), most);
      if (isFirst && !this.isLoading) {
        this.next = page.next;
        if (page.captures.length < 200) this.loadOlder();
      }
      this.view.counted();
      if (isFirst) this.view.first();
      this.view.settled();
    } catch (error) {
      if (error.name === "AbortError" || own !== this.turn) return;
      if (error.status === 404) {
        this.hasOnlyRecords = true;
        return this.load();
      }
      if (error.status === 400) this.view.mistake(error);
      else toast(error.message);
      this.view.counted();
    }
  }

  async loadOlder() {
    if (!this.next || this.isLoading || this.hasOnlyRecords || this.list.rows.length >= most) return;
    this.isLoading = true;
    const own = this.turn;
    try {
      // A search that is out of time goes on.
      for (let found = 0; found < 200 && this.next && own === this.turn;) {
        const path = this.path("", { before: this.next, limit: 1000 });
        const page = await get(path, { signal: this.stream.signal });
        if (own !== this.turn) return;
        this.next = page.next;
        found += page.captures.length;
        this.list.putOlder(page.captures);
        this.view.counted();
      }
    } catch (error) {
      if (own === this.turn) toast(error.message);
    } finally {
      this.isLoading = false;
      this.view.settled();
    }
  }

  /** Without captures the records of the last exchanges are shown. */
  async loadRecords(own) {
    this.view.withoutCaptures();
    try {
      const take = (type, data) => {
        if (type === "message") this.take("capture", rowOf(data));
      };
      follow("/v1/events", this.stream.signal, take, (isOpen) => this.view.live(isOpen));
      const records = await get("/v1/requests?limit=200");
      this.list.put(records.map(rowOf).reverse(), most);
      this.view.first();
      this.view.counted();
      this.view.settled();
    } catch (error) {
      if (own === this.turn) toast(error.message);
    }
  }

  /** An event of the stream. */
  take(type, data) {
    if (Object.hasOwn(notices, type)) return toast(notices[type](data));
    if (type !== "capture") return;
    this.startList();
    const rows = data.captures ?? [data];
    this.kept += rows.filter((row) => row.state === "open" && !this.list.byId.has(row.id)).length;
    this.list.put(this.isPaused ? this.knownOf(rows) : rows, most);
    this.view.arrived(rows);
    this.view.counted();
    this.view.settled();
  }

  /** The rows that the list shows already; the others wait for the end of the pause. */
  knownOf(rows) {
    const known = rows.filter((row) => this.list.byId.has(row.id));
    this.waiting += rows.length - known.length;
    return known;
  }

  /** Hides what the filter finds up to the newest request, until `removeHidden` or `showHidden`. */
  hide() {
    this.hidden = { through: this.list.rows.at(-1)?.number ?? 0, filter: this.shownFilter() };
    return this.load();
  }

  showHidden() {
    this.hidden = null;
    return this.load();
  }

  /** Removes what is hidden from the gateway; `keepalive` lets the browser send it when the page closes. */
  async removeHidden() {
    const { hidden } = this;
    if (!hidden) return;
    this.hidden = null;
    const filter = joined([hidden.filter, `~id <=${hidden.through}`]);
    await remove("/v1/captures?" + new URLSearchParams({ filter }), { keepalive: true });
  }

  /** Removes some requests from the gateway. */
  async remove(ids) {
    for (let from = 0; from < ids.length; from += mostRemoved) {
      const filter = ids.slice(from, from + mostRemoved).map((id) => "~id " + id).join(" | ");
      await remove("/v1/captures?" + new URLSearchParams({ filter }));
    }
    this.kept = Math.max(0, this.kept - ids.length);
  }
}
