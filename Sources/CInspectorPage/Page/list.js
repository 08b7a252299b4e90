// A list of very many rows: only the visible ones are elements. The newest row is the first.
import { make } from "./dom.js";

const rowHeight = 26, spare = 6, pause = 80;

export class RowList {
  /** `columns`: [{ key, title, width, isNumber, text(row), className(row) }]. */
  constructor({ label, onSelect, onOpen, onEnd }) {
    this.rows = []; // by number, ascending: the newest is the last
    this.byId = new Map();
    this.selected = null;
    this.pool = [];
    this.columns = [];
    this.onSelect = onSelect;
    this.onOpen = onOpen;
    this.onEnd = onEnd;
    this.head = make("div.head", { role: "row" });
    this.space = make("div.space", { role: "rowgroup" });
    this.body = make(
      "div.body",
      { tabindex: 0, role: "grid", "aria-label": label, "aria-multiselectable": "false" },
      this.space,
    );
    this.element = make("div.list", make("div.headbox", this.head), this.body);
    this.body.addEventListener("scroll", () => {
      this.element.firstChild.scrollLeft = this.body.scrollLeft;
      this.draw();
    });
    this.body.addEventListener("click", (event) => {
      const line = event.target.closest("[role=row]");
      if (line?.row) {
        this.select(line.row.id);
        this.onOpen?.(line.row);
      }
    });
    this.body.addEventListener("keydown", (event) => {
      if (this.key(event)) event.preventDefault();
    });
    this.sizes = new ResizeObserver(() => this.draw());
    this.sizes.observe(this.body);
    this.drawnAt = 0;
    this.timer = 0;
  }

  leave() {
    this.sizes.disconnect();
    clearTimeout(this.timer);
  }

  setColumns(columns) {
    this.columns = columns;
    this.element.style.setProperty("--columns", columns.map((column) => column.width).join(" "));
    this.element.style.setProperty(
      "--least",
      columns.reduce((sum, column) => sum + (parseInt(column.width.replace("minmax(", "")) || 60), 0) + "px",
    );
    this.head.replaceChildren(
      ...columns.map((column) =>
        make(column.isNumber ? "span.number" : "span", { role: "columnheader" }, column.title)
      ),
    );
    this.pool = [];
    this.space.replaceChildren();
    this.draw();
  }

  clear() {
    this.rows = [];
    this.byId.clear();
    this.body.scrollTop = 0;
    this.draw();
  }

  /** Takes rows in: new ones, and what changed of others. Older ones are dropped above `most`. */
  put(rows, most) {
    let above = 0;
    for (const row of rows) {
      const known = this.byId.get(row.id);
      if (known) {
        Object.assign(known, row);
        continue;
      }
      row.number = Number(row.id);
      this.byId.set(row.id, row);
      if (!this.rows.length || this.rows[this.rows.length - 1].number < row.number) {
        this.rows.push(row);
        above += 1;
      } else {
        const place = this.find(row.number);
        this.rows.splice(place, 0, row);
      }
    }
    if (this.rows.length > most) {
      for (const old of this.rows.splice(0, this.rows.length - most + Math.floor(most / 20))) {
        this.byId.delete(old.id);
      }
    }
    // A user who has scrolled away from the newest row keeps the rows on the screen.
    if (above && this.body.scrollTop > rowHeight) {
      this.space.style.height = this.rows.length * rowHeight + "px";
      this.body.scrollTop += above * rowHeight;
    }
    this.drawSoon();
  }

  /** The rows of an older page. */
  putOlder(rows) {
    const fresh = rows.filter((row) => !this.byId.has(row.id)).reverse();
    for (const row of fresh) {
      row.number = Number(row.id);
      this.byId.set(row.id, row);
    }
    this.rows = fresh.concat(this.rows);
    this.draw();
  }

  find(number) {
    let low = 0, high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rows[middle].number < number) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  get oldest() {
    return this.rows[0];
  }

  /** The place from the top; -1 where it is not in the list. */
  placeOf(id) {
    const row = this.byId.get(id);
    return row ? this.rows.length - 1 - this.find(row.number) : -1;
  }

  at(place) {
    return this.rows[this.rows.length - 1 - place];
  }

  select(id, follows = false) {
    this.selected = id;
    if (follows) this.reveal(this.placeOf(id));
    this.draw();
  }

  reveal(place) {
    if (place < 0) return;
    const top = place * rowHeight, height = this.body.clientHeight;
    if (top < this.body.scrollTop) this.body.scrollTop = top;
    else if (top + rowHeight > this.body.scrollTop + height) this.body.scrollTop = top + rowHeight - height;
  }

  /** Goes up or down by keys. True if the key was one of them. */
  key(event) {
    const page = Math.max(1, Math.floor(this.body.clientHeight / rowHeight) - 1);
    const step =
      { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Enter") {
      const row = this.byId.get(this.selected);
      if (row) this.onOpen?.(row);
      return !!row;
    }
    if (step === undefined || !this.rows.length) return false;
    const from = this.selected === null ? -1 : this.placeOf(this.selected);
    const to = Math.max(0, Math.min(this.rows.length - 1, from + step));
    const row = this.at(to);
    this.select(row.id, true);
    this.onSelect?.(row);
    return true;
  }

  /** Draws, but not too often: while many rows arrive, other work comes between. */
  drawSoon() {
    if (this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = 0;
      requestAnimationFrame(() => this.draw());
    }, Math.max(0, pause - (performance.now() - this.drawnAt)));
  }

  draw() {
    this.drawnAt = performance.now();
    const count = this.rows.length, height = this.body.clientHeight;
    if (!height || !this.columns.length) return;
    if (this.height !== count) {
      this.space.style.height = count * rowHeight + "px";
      this.height = count;
      this.body.setAttribute("aria-rowcount", count);
    }
    const first = Math.max(0, Math.floor(this.body.scrollTop / rowHeight) - spare);
    const last = Math.min(count, Math.ceil((this.body.scrollTop + height) / rowHeight) + spare);
    for (let index = 0; index < Math.max(last - first, this.pool.length); index += 1) {
      const place = first + index;
      let line = this.pool[index];
      if (place >= last) {
        if (line && !line.hidden) line.hidden = true;
        continue;
      }
      if (!line) {
        line = make(
          "div.row",
          { role: "row" },
          this.columns.map((column) => make(column.isNumber ? "span.number" : "span", { role: "gridcell" }, " ")),
        );
        this.pool.push(line);
        this.space.append(line);
      }
      this.fill(line, this.at(place), place);
    }
    if (last > count - 40) this.onEnd?.();
  }

  fill(line, row, place) {
    if (line.hidden) line.hidden = false;
    if (line.place !== place) {
      line.place = place;
      line.style.transform = `translateY(${place * rowHeight}px)`;
      line.setAttribute("aria-rowindex", place + 1);
      line.classList.toggle("odd", place % 2 === 1);
    }
    const isSelected = row.id === this.selected;
    if (line.isSelected !== isSelected) {
      line.isSelected = isSelected;
      line.setAttribute("aria-selected", isSelected);
    }
    if (isSelected) {
      line.id = "selected-row";
      this.body.setAttribute("aria-activedescendant", line.id);
    } else if (line.id) line.removeAttribute("id");
    line.row = row;
    let cell = line.firstChild;
    for (const column of this.columns) {
      const text = column.text(row);
      if (cell.firstChild.data !== text) {
        cell.firstChild.data = text;
        if (column.hasTitle) cell.title = text;
      }
      const name = column.className?.(row);
      if (name !== undefined && cell.className !== name) cell.className = name;
      cell = cell.nextSibling;
    }
  }
}
